"""Kernels of the runtime itself: what belongs to no backend because it lies between them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from attrs import frozen

from onert.backend import EvaluatingKernel, Kernel, Sequence, Tensors
from onert.ir import Context, Operation
from onert.ir.ops.control_flow.control import CallOnce
from onert.ir.ops.data_movement.permute import Permute


def why_not(operation: Operation) -> str | None:
    """Why none of these kernels runs an operation; None if one does."""
    if isinstance(operation.op, Permute) or operation.op.subgraphs:
        return None
    return f"{operation.op.label} is neither a copy between memory spaces nor control flow"


def kernel(sequence: Sequence) -> Kernel:
    """The kernel of a sequence of one operation."""
    (operation,) = sequence.body
    if isinstance(operation.op, Permute):
        return PermuteKernel(operation)
    if isinstance(operation.op, CallOnce):
        return OnceKernel(operation.op.key, EvaluatingKernel(sequence))
    return EvaluatingKernel(sequence)


@frozen(eq=False)
class PermuteKernel:
    """Out of one memory space, through the host, into another."""

    operation: Operation

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        (source,) = self.operation.used
        (target,) = self.operation.outputs
        return lambda: tensors[target].assign(tensors[source].array)


@frozen(eq=False)
class OnceKernel:
    """Nothing but a look at the state where the subgraph has run."""

    key: Hashable
    first: EvaluatingKernel

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        return Once(self.key, self.first.bind(tensors, context), context.state)


class Once:
    """A call that is made where the state has not its key yet. It changes no state any more once it is `settled`."""

    __slots__ = ("_call", "_key", "_state")

    def __init__(self, key: Hashable, call: Callable[[], None], state: Mapping[Any, Any]) -> None:
        self._key = key
        self._call = call
        self._state = state

    @property
    def settled(self) -> bool:
        return self._key in self._state

    def __call__(self) -> None:
        if self._key not in self._state:
            self._call()
