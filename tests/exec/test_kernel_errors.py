"""Whatever kernels of other packages raise becomes one error that names the place, with every executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from compiler.toy import Draft, ToyBackend, ToyScale

from onert import compiler
from onert.backend import Kernel, Part, Sequence, Settings, Tensors
from onert.compiler import Options
from onert.exec import Execution
from onert.exec.observers import Profile
from onert.ir import BackendError, Context, ExecutionError, ModelError, OnertError, Package, RuleError, Subgraphs


@frozen(eq=False)
class Parts:
    """A bound sequence of pieces."""

    parts: tuple[Part, ...]

    def __call__(self) -> None:
        for part in self.parts:
            part.call()


@frozen(eq=False)
class Raising:
    """A kernel that raises when it is bound, when it runs, or in one of its pieces."""

    error: Exception
    when: str

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        if self.when == "bound":
            raise self.error

        def call() -> None:
            raise self.error

        return Parts((Part((0,), call),)) if self.when == "a piece" else call


class Broken(ToyBackend):
    """A backend whose kernels raise."""

    def __init__(self, error: Exception, when: str) -> None:
        super().__init__("broken")
        self.raising = Raising(error, when)

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        return self.raising


RAISED: dict[str, tuple[Exception, type[OnertError], str]] = {
    "a number": (ZeroDivisionError("division by zero"), BackendError, " failed: ZeroDivisionError: division by zero"),
    "memory": (MemoryError(), BackendError, " failed: MemoryError: "),
    "a rule": (RuleError("index 9 is out of range"), ExecutionError, ": index 9 is out of range"),
    "an error of its own": (ModelError("as it is"), ModelError, "as it is"),
}


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
@pytest.mark.parametrize("when", ["bound", "run", "a piece"])
@pytest.mark.parametrize(("error", "kind", "message"), RAISED.values(), ids=RAISED.keys())
def test_what_a_kernel_raises_becomes_one_error_that_names_the_place(
    error: Exception, kind: type[OnertError], message: str, when: str, executor: str
) -> None:
    d = Draft()
    package = Package((Subgraphs((d.graph(d.op(ToyScale(2.0), d.input(4, name="x"))),)),))
    program = compiler.compile(package, Options(executor=executor, optimize=False), [Broken(error, when)])
    for observers in ((), (Profile(),)):
        with Execution(program, observers=observers) as execution, pytest.raises(kind) as caught:
            execution.run([np.zeros(4, np.float32)])
        assert str(caught.value).endswith(message)
        if kind is not ModelError:
            assert str(caught.value).startswith("backend 'broken', operation 0 ToyScale")


def test_outputs_cannot_be_read_before_a_run_or_after_setting_a_shape() -> None:
    d = Draft()
    package = Package((Subgraphs((d.graph(d.op(ToyScale(2.0), d.input(4, name="x"))),)),))
    program = compiler.compile(package, Options(optimize=False), [ToyBackend("builtin")])
    execution = Execution(program)
    steps: list[Any] = [lambda: None, lambda: execution.set_input_shape(0, (2,))]
    for at, step in enumerate(steps):
        step()
        with pytest.raises(ExecutionError, match="has no elements before the first run"):
            execution.get_output(0)
        execution.run([np.ones(4 - 2 * at, np.float32)])
        assert execution.get_output(0).tolist() == [2.0] * (4 - 2 * at)
