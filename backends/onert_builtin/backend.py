"""Kernels of the runtime itself: what belongs to no backend because it lies between them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path

from attrs import frozen

from onert.backend import Backend, EvaluatingKernel, Kernel, Sequence, Settings, Tensors
from onert.backend.cache import sources
from onert.ir import CallTypes, Context, Operation
from onert.ir.ops.control import CallOnce
from onert.ir.ops.permute import Permute


class Builtin(Backend):
    """Runs `Permute`, which carries a tensor from one memory space to another, and operations that run subgraphs."""

    name = "builtin"
    single = True

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        if isinstance(operation.op, Permute) or operation.op.subgraphs:
            return None
        return f"{operation.op.label} is neither a copy between memory spaces nor control flow"

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        return _kernel(sequence)

    def fingerprint(self, settings: Settings) -> str:
        return sources(Path(__file__).parent)

    def keep(self, kernel: Kernel) -> tuple[()]:
        return ()

    def revive(self, kept: tuple[()], sequence: Sequence) -> Kernel:
        return _kernel(sequence)


def _kernel(sequence: Sequence) -> Kernel:
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
        key, call, state = self.key, self.first.bind(tensors, context), context.state

        def once() -> None:
            if key not in state:
                call()

        return once
