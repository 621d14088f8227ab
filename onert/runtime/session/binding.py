"""Inputs and outputs bound to memory that the caller owns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from onert.exec import Execution
from onert.ir import Array, ExecutionError, OnertError

from .choices import RunOptions, run_by
from .errors import FailedRun, InvalidArgument
from .values import NodeArg, OrtValue, memory_at, numpy_type


class Bindable(Protocol):
    """The part of a session that a binding uses."""

    def get_inputs(self) -> list[NodeArg]: ...

    def given(self, name: str, value: Any) -> Any: ...

    def require_outputs(self, names: Sequence[str] | None) -> Sequence[str]: ...

    def taken(self, name: str, array: Array) -> Any: ...

    def new_execution(self) -> Execution: ...

    def for_inputs(self, feed: Mapping[str, Any]) -> Bindable: ...

    def borrow(self) -> Execution: ...

    def give_back(self, execution: Execution) -> None: ...


class IOBinding:
    """Inputs and outputs of a session, bound once and used for any number of runs.

    Arrays are used in place: change the elements of a bound input between runs, and the next run reads them. An
    output bound without memory gets a new array in each run.
    """

    def __init__(self, session: Bindable) -> None:
        self._session = session
        self._execution: Execution | None = None
        """Its own execution, once an output has been bound to memory."""
        self._running: Bindable = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: dict[str, OrtValue] = {}
        self._apart: Sequence[str] | None = None
        """The outputs that its own execution does not write in place; None if it has to be given all memory again."""

    def bind_cpu_input(self, name: str, array: Array) -> None:
        self._bind_input(name, array)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        self._bind_input(name, value)

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Bind an input to memory at an address, which must stay valid as long as it is bound."""
        self._bind_input(name, memory_at(buffer_ptr, shape, numpy_type(element_type)))

    def _bind_input(self, name: str, value: Any) -> None:
        self._apart = None
        self._inputs[name] = self._session.given(name, value)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Bind an output to memory at an address, or to a new array in each run."""
        self._session.require_outputs([name])
        self._apart = None
        if buffer_ptr is None or shape is None or element_type is None:
            self._outputs[name] = None
        else:
            self._outputs[name] = OrtValue(memory_at(buffer_ptr, shape, numpy_type(element_type)))

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        self._session.require_outputs([name])
        self._apart = None
        self._outputs[name] = value

    def clear_binding_inputs(self) -> None:
        self._apart = None
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Unbind the outputs: later runs do not write to the memory that they were bound to."""
        self._outputs.clear()
        self._results.clear()
        self._execution = self._apart = None

    def synchronize_inputs(self) -> None:
        """Nothing to do: all memory is the CPU's."""

    def synchronize_outputs(self) -> None:
        """Nothing to do: all memory is the CPU's."""

    def execute(self, run_options: RunOptions | None = None) -> None:
        """Run once. Raises ArgumentError if an input is not bound, and RunError if the run fails or is ended."""
        missing = [end.name for end in self._session.get_inputs() if end.name not in self._inputs]
        if missing:
            raise InvalidArgument(f"inputs {', '.join(missing)} are not bound")
        session = self._session.for_inputs(self._inputs)
        if session is not self._running:
            self._execution, self._apart, self._running = None, None, session
        if self._execution is None and any(value is not None for value in self._outputs.values()):
            self._execution = session.new_execution()
        execution = self._execution or session.borrow()
        try:
            with run_by(run_options, execution):
                self._run(execution)
        except OnertError as error:
            raise FailedRun(str(error)) from error
        finally:
            if execution is not self._execution:
                session.give_back(execution)

    def _run(self, execution: Execution) -> None:
        apart, self._apart = self._apart, None
        if apart is None:
            for name, array in self._inputs.items():
                execution.set_input(name, array)
            apart = [name for name, value in self._outputs.items() if not self._in_place(execution, name, value)]
        execution.execute()
        self._apart = apart if execution is self._execution else None
        self._results = {name: self._result(execution, name, apart) for name in self._outputs}

    def _in_place(self, execution: Execution, name: str, value: OrtValue | None) -> bool:
        """Whether the run writes an output in place: its shape is static, and the memory is contiguous."""
        if value is None or not value.is_tensor() or value.numpy().dtype == object:
            return False
        try:
            execution.set_output(name, value.numpy())
        except ExecutionError:
            return False
        return True

    def _result(self, execution: Execution, name: str, apart: Sequence[str]) -> OrtValue:
        bound = self._outputs[name]
        if bound is not None and name not in apart:
            return bound
        found = self._session.taken(name, execution.get_output(name))
        if bound is None:
            return OrtValue(found)
        mine = bound.numpy()
        if not isinstance(found, np.ndarray) or mine.shape != found.shape or mine.dtype != found.dtype:
            raise FailedRun(f"output {name!r} does not fit the memory bound to it, {mine.dtype}{list(mine.shape)}")
        np.copyto(mine, found)
        return bound

    def get_outputs(self) -> list[OrtValue]:
        """The bound outputs of the last run, in the order in which they were bound."""
        return list(self._results.values())

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Copies of the bound outputs of the last run."""
        contents = (value.content for value in self._results.values())
        return [content.copy() if isinstance(content, np.ndarray) else content for content in contents]
