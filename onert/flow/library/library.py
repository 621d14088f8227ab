"""A compiler's library: transformations, kernels and derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from onert.flow.gradients import GradientRule
from onert.flow.graph import Graph
from onert.frontend.flow.emitter import Emitter, Node, Rule
from onert.frontend.flow.file import Operation
from onert.ir import CompileError
from onert.ir.ops.custom import Python

Transformer = Callable[[Graph], bool]
"""Changes a flow, and returns whether it did. It must preserve the meaning of every function."""
_MOST_ROUNDS = 1000
"""More than the standard transformations need for any flow: a limit for users' own that undo one another."""


def _always(operation: Operation) -> bool:
    return True


@frozen(eq=False)
class Kernel:
    """The implementation of operations of a type: a rule that adds IR operations, for those that it `supports`."""

    name: str
    operation: str
    rule: Rule
    supports: Callable[[Operation], bool] = _always


class Library:
    """Transformations and kernels, of which the last registered has priority, and derivatives of operations."""

    def __init__(self) -> None:
        self.transformers: list[Transformer] = []
        self.kernels: dict[str, list[Kernel]] = {}
        self.gradients: dict[str, GradientRule] = {}

    def register(self, kernel: Kernel) -> None:
        """Add a kernel."""
        self.kernels.setdefault(kernel.operation, []).append(kernel)

    def transformer(self, transform: Transformer) -> Transformer:
        """Add a transformation; a decorator."""
        self.transformers.append(transform)
        return transform

    def gradient(self, operation: str) -> Callable[[GradientRule], GradientRule]:
        """A decorator that sets the derivative of operations of a type."""

        def add(rule: GradientRule) -> GradientRule:
            self.gradients[operation] = rule
            return rule

        return add

    def kernel(
        self, operation: str, name: str | None = None, supports: Callable[[Operation], bool] = _always
    ) -> Callable[[Rule], Rule]:
        """A decorator that adds a rule as a kernel for operations of a type."""

        def add(rule: Rule) -> Rule:
            self.register(Kernel(name or operation, operation, rule, supports))
            return rule

        return add

    def function(
        self, operation: str, name: str | None = None, supports: Callable[[Operation], bool] = _always
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator that adds a Python function on arrays, which returns an array for each result, as a kernel."""

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.register(Kernel(name or function.__name__, operation, _calling(operation, function), supports))
            return function

        return add

    def found(self, operation: Operation) -> Kernel | None:
        """The kernel for an operation; None if none supports it."""
        return next((k for k in reversed(self.kernels.get(operation.type, ())) if k.supports(operation)), None)

    def transform(self, flow: Graph) -> None:
        """Run all transformations until nothing changes. Raises CompileError if they do not terminate."""
        for _ in range(_MOST_ROUNDS):
            changes = [transform(flow) for transform in reversed(self.transformers)]
            if not any(changes):
                return
        raise CompileError(f"the transformations still change the flow after {_MOST_ROUNDS} rounds")


def _calling(operation: str, function: Callable[..., Any]) -> Rule:
    """A rule that calls a Python function when the cell is computed."""

    def called(*arrays: Any, options: bytes) -> Any:
        found = function(*arrays)
        return tuple(np.asarray(a) for a in found) if isinstance(found, tuple | list) else np.asarray(found)

    def rule(e: Emitter, node: Node) -> Sequence[int]:
        return e.add_many(Python(operation, called, b"", node.results), *node.inputs)

    return rule
