"""Kernels of the runtime itself, which sit between backends: copies between memory spaces, and control flow."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from attrs import frozen

from onert.backend import HOST, EvaluatingKernel, Kernel, Sequence, StretchedKernel, Tensor, Tensors, queue_of
from onert.backend.evaluation.evaluating import stretched
from onert.ir import Context, Operation
from onert.ir.ops.control_flow.control import CallOnce
from onert.ir.ops.control_flow.rest import Rest
from onert.ir.ops.data_movement.permute import Permute


def why_not(operation: Operation) -> str | None:
    """Why no kernel here runs an operation; None if one does."""
    if isinstance(operation.op, Permute | Rest) or operation.op.subgraphs:
        return None
    return f"{operation.op.label} is neither a copy between memory spaces nor control flow"


def kernel(sequence: Sequence) -> Kernel:
    """The kernel of a sequence, which must be a single operation."""
    (operation,) = sequence.body
    if isinstance(operation.op, Permute):
        return PermuteKernel(operation)
    if isinstance(operation.op, CallOnce):
        return OnceKernel(operation.op.key, EvaluatingKernel(sequence))
    return EvaluatingKernel(sequence)


def stretched_kernel(kernel: Kernel) -> StretchedKernel | None:
    """The kernel for all lengths that a trace covers; None if it is not one that runs a part of the entry."""
    if isinstance(kernel, EvaluatingKernel) and all(isinstance(each.op, Rest) for each in kernel.sequence.body):
        found: StretchedKernel | None = stretched(kernel.sequence)
        return found
    return None


@frozen(eq=False)
class PermuteKernel:
    """Copies a tensor from one memory space to another, through the host."""

    operation: Operation

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        (source,) = self.operation.used
        (target,) = self.operation.outputs
        return Copy(tensors[source], tensors[target])


class Copy:
    """Copies a tensor, unless its elements are the ones copied last time.

    `queues` are those of both memories. `waits` says that the target is host memory, which is read after the copy.
    """

    __slots__ = ("_copied", "_source", "_target", "queues", "waits")

    def __init__(self, source: Tensor, target: Tensor) -> None:
        self._source = source
        self._target = target
        self._copied: object = None
        both = (queue_of(source.memory), queue_of(target.memory))
        self.queues = tuple(queue for queue in both if queue is not None)
        self.waits = target.memory.name == HOST.name

    def __call__(self) -> None:
        stamp = self._source.stamp
        if stamp is None or stamp is not self._copied:
            self._target.assign(self._source.array)
            self._copied = stamp


@frozen(eq=False)
class OnceKernel:
    """Runs a subgraph on the first call; afterwards it only looks up the state."""

    key: Hashable
    first: EvaluatingKernel

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        return Once(self.key, self.first.bind(tensors, context), context.state)


class Once:
    """A call that is made only while the state lacks its key."""

    __slots__ = ("_call", "_key", "_state")

    def __init__(self, key: Hashable, call: Callable[[], None], state: Mapping[Any, Any]) -> None:
        self._key = key
        self._call = call
        self._state = state

    def __call__(self) -> None:
        if self._key not in self._state:
            self._call()
