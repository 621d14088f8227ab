"""What kernels that run subgraphs or keep state are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onert.backend import Program
from onert.ir import Array, ExecutionError

from .executors import executor
from .frame import Frame

MAX_DEPTH = 64
"""How deep subgraphs may call one another; models nest a handful, and every level holds an arena."""


class Context:
    """The subgraphs and the state of one execution.

    `state` holds resource variables, tables and the like by their keys. A subgraph's frame is kept for the next call; a
    subgraph that is entered again while it runs gets another frame.
    """

    def __init__(self, program: Program, state: dict[Any, Any]) -> None:
        self._program = program
        self._idle: dict[int, list[Frame]] = {}
        self._depth = 0
        self._variables: dict[int, dict[int, Array]] = {}
        self._run = executor(program.executor)
        self.state = state

    @property
    def max_iterations(self) -> int | None:
        return self._program.max_iterations

    def call(self, subgraph: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run a subgraph on `inputs`; its results are the caller's own. ExecutionError when nested too deep."""
        if self._depth >= MAX_DEPTH:
            raise ExecutionError(f"subgraphs call one another more than {MAX_DEPTH} deep")
        idle = self._idle.setdefault(subgraph, [])
        frame = idle.pop() if idle else self.frame(subgraph)
        self._depth += 1
        try:
            frame.give(inputs)
            self._run(frame)
            return frame.take()
        finally:
            self._depth -= 1
            idle.append(frame)

    def frame(self, subgraph: int) -> Frame:
        """A new frame for a subgraph, which shares the subgraph's variables with every other one."""
        frame = Frame(self._program.routines[subgraph], self)
        frame.share_variables(self._variables.setdefault(subgraph, {}))
        return frame

    def reset(self) -> None:
        """Forget all state: variables are cleared, tables and resource variables are gone."""
        for subgraph, variables in self._variables.items():
            operands = self._program.routines[subgraph].subgraph.operands
            for index, array in variables.items():
                array[...] = operands[index].type.cleared
        self.state.clear()
