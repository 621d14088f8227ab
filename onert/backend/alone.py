"""The context of a kernel that runs outside of an execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import field, frozen

from onert.ir import Array, ExecutionError
from onert.ir.value import Value


@frozen
class Alone(Value):
    """A context without subgraphs and without limits."""

    state: dict[Any, Any] = field(factory=dict)
    max_iterations: int | None = None
    stop: None = None

    def spend(self, work: int) -> None:
        """Unlimited."""

    def hold(self, nbytes: int, beside: int = 0) -> None:
        """Unlimited."""

    def call(self, subgraph: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        raise ExecutionError(f"there is no subgraph {subgraph}")
