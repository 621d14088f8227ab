"""State that a run advances as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from onert.backend import Program
from onert.ir import Array, Effect

if TYPE_CHECKING:
    from .frame import Calls, Frame


def is_kept_by(program: Program) -> bool:
    """Whether runs of a program change state other than its entry's variables, which change at the end at once."""
    return any(
        (index != program.entry and routine.subgraph.state)
        or any(operation.op.effect is Effect.WRITE for operation in routine.subgraph.operations)
        for index, routine in enumerate(program.routines)
    )


class Journal:
    """What state was when a run began, until the run is whole.

    `state` holds variables and tables by key, `variables` the tensors that are kept from run to run, by subgraph.
    """

    def __init__(self, state: dict[Any, Any], variables: dict[int, dict[int, Array]]) -> None:
        self._state = state
        self._variables = variables
        self._before: dict[None, tuple[dict[Any, Any], list[tuple[Array, Array]]]] = {}
        self.commit = self._before.clear
        """The run is whole: a function written in C, to be called with what else happens then at once."""

    def begin(self, frame: Frame) -> None:
        """A run of the frame begins."""
        self.restore()
        if not frame.routine.subgraph.state and _is_indivisible(frame.calls):
            return
        before = {key: _copied(value) for key, value in self._state.items()}
        arrays = [array for each in self._variables.values() for array in each.values()]
        self._before[None] = before, [(array, array.copy()) for array in arrays]

    def restore(self) -> None:
        """Undo what a run changed that is not whole."""
        found = self._before.get(None)
        if found is None:
            return
        before, arrays = found
        for key in self._state.keys() - before.keys():
            del self._state[key]
        self._state.update(before)
        for array, content in arrays:
            array[...] = content
        self.commit()


def _is_indivisible(calls: Calls) -> bool:
    """Whether one native call makes all changes of the state: the other calls are `settled`."""
    changing = [call for call in calls if not getattr(call, "settled", False)]
    return len(changing) == 1 and getattr(changing[0], "indivisible", False)


def _copied(value: Any) -> Any:
    """Kernels write to arrays in place; everything else is replaced."""
    return value.copy() if isinstance(value, np.ndarray) else value


@frozen(eq=False)
class Journaled:
    """Runs a frame so that state changes as a whole or not at all; the frame commits."""

    run: Callable[[Frame], None]
    journal: Journal

    def __call__(self, frame: Frame) -> None:
        self.journal.begin(frame)
        self.run(frame)
