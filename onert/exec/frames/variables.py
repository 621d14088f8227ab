"""Resource variables of an execution: operands whose memory is in the execution's state.

Executions that share state share these arrays and update them in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from onert.backend import HOST, Routine
from onert.ir import Array, ExecutionError, Resource, TensorType
from onert.ir import shape as shapes

from .frame import Frame

_NOWHERE: Any = object()  # the array of a variable that no run has used


class StateMemory(np.ndarray[Any, Any]):
    """Memory of a resource variable: callers can only get arrays in it through the state."""


def memory_for(type_: TensorType) -> Array:
    """An array for a resource variable of a static type, aligned to a cache line."""
    buffer = HOST.allocate(max(type_.nbytes, 1)).view(StateMemory)
    return np.ndarray(shapes.static(type_.shape), type_.dtype.numpy, buffer)


@frozen(eq=False)
class Held:
    """A resource variable of the entry; `is_read` says whether a run reads the value of an earlier run."""

    operand: int
    type: TensorType
    resource: Resource
    is_read: bool


class Variables:
    """The resource variables of one execution's entry."""

    def __init__(self, frame: Frame, state: dict[Any, Any]) -> None:
        self._frame = frame
        self._state = state
        self._held = {held.resource.key: held for held in _held(frame.routine)}
        self._arrays: dict[Any, Any] = dict.fromkeys(self._held, _NOWHERE)

    def begin(self) -> None:
        """Prepare a run to use the arrays in the state. Raises ExecutionError if one has another type."""
        get = self._state.get
        moved = [key for key, array in self._arrays.items() if get(key) is not array]
        for key in moved:
            self._take(self._held[key])

    def _take(self, held: Held) -> None:
        key = held.resource.key
        found = self._state.get(key)
        if found is None or not _is_like(found, held.type):
            array = self._made(held, found)
        elif isinstance(found.base, StateMemory):
            array = found
        else:  # a caller's own array, whose memory may have other uses
            array = self._own(held)
            array[...] = found
            self._state[key] = array
        self._arrays[key] = array
        self._frame.place(held.operand, array)

    def _made(self, held: Held, found: Any) -> Array:
        """The array of a variable that is missing in the state, or has another type there."""
        name, array = held.resource.name, self._own(held)
        if found is not None and held.is_read:
            raise ExecutionError(
                f"variable {name!r} has {found.dtype}{list(found.shape)}, expected "
                f"{held.type.dtype.numpy}{shapes.text(held.type.shape)}"
            )
        beginning = held.resource.beginning(held.type)
        if beginning is not None:
            array[...] = beginning
            self._state[held.resource.key] = array
        elif held.is_read:
            raise ExecutionError(f"variable {name!r} is read before anything was assigned to it")
        return array

    def _own(self, held: Held) -> Array:
        known = self._arrays[held.resource.key]
        return memory_for(held.type) if known is _NOWHERE else known


def _is_like(array: Any, type_: TensorType) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == type_.dtype.numpy and array.shape == type_.shape


def _held(routine: Routine) -> list[Held]:
    subgraph = routine.subgraph
    sources = {update.source for update in subgraph.state}
    return [
        Held(index, operand.type, operand.resource, index in routine.read or index in sources)
        for index, operand in enumerate(subgraph.operands)
        if operand.resource is not None
    ]
