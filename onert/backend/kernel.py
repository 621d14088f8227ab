"""Kernels: what a backend makes of a sequence of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attrs import frozen

from onert.ir import Array, Context, Operation, Subgraph
from onert.ir.value import Told, Value

from .tensor import Tensors

if TYPE_CHECKING:
    from onert.ir.symbolic.instructions import Instructions


@frozen
class Group(Value):
    """Operations of a sequence that a kernel runs as one: it may write any of their results before it has read all of
    their operands, so that all of these have memory of their own.

    `unstored` are results that only this group uses and that the kernel never writes to memory: they get none.
    `threads` are those of the kernel's that run it, the first and how many, side by side with groups that other threads
    run; None for all of them. The compiler sets it, for backends that say `side_by_side`.
    """

    operations: tuple[int, ...]
    unstored: tuple[int, ...] = ()
    threads: tuple[int, int] | None = None


@frozen
class Sequence(Value):
    """Operations of one subgraph that one backend runs as a unit, in order.

    `inputs` are the operands read but not made here (constants among them), `outputs` those that are used elsewhere
    or leave the subgraph. Operands that are neither live in the arena too, but no one else looks at them.
    `groups` is what the backend's `fuse` answered: every operation once, in the order in which the kernel runs them.
    """

    subgraph: Subgraph
    operations: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str = ""
    groups: tuple[Group, ...] = ()

    @property
    def body(self) -> tuple[Operation, ...]:
        return tuple(self.subgraph.operations[i] for i in self.operations)


@frozen(eq=False)
class Part(Told):
    """A piece of a bound sequence that can be run alone: which operations, and the call that runs them."""

    operations: tuple[int, ...]
    call: Callable[[], None]


@runtime_checkable
class HasParts(Protocol):
    """What `bind` returns, where it can also be run piece by piece: observers then time each piece.

    Running the parts in order is the same as calling it.
    """

    @property
    def parts(self) -> tuple[Part, ...]: ...

    def __call__(self) -> None: ...


class Kernel(Protocol):
    """A compiled sequence. It is shared by every execution of a program, so it keeps nothing of any of them."""

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        """A call without arguments that runs the sequence once on these tensors.

        Called once for every execution, and again whenever a buffer of one of the tensors has moved. What it returns
        raises RuleError or ExecutionError for elements that break a rule; it never reads or writes outside its tensors.
        It may have `parts` (`HasParts`).
        """


class Stretched(Protocol):
    """What a `StretchedKernel` binds: it runs for the lengths whose numbers were put last."""

    @property
    def run(self) -> Callable[[], None]:
        """What `Kernel.bind` returns."""

    def put(self) -> None:
        """Run with the numbers that are in the registers now, all of whose conditions hold."""


class StretchedKernel(Protocol):
    """A kernel for all lengths that a trace is for (`Backend.stretched`), shared by executions like any other."""

    @property
    def wanted(self) -> tuple[int, ...]:
        """The numbers of the trace that it needs, by index."""

    @property
    def operands(self) -> frozenset[int]:
        """The operands whose memory it touches."""

    def followed(self, numbers: Instructions, registers: Array) -> Callable[[], bool]:
        """A call that follows instructions on these registers, in which the lengths are; False where they have no
        result for these. It changes no other memory."""

    def bind(self, tensors: Tensors, context: Context, numbers: Instructions, registers: Array) -> Stretched:
        """The sequence on these tensors, whose memory has room for the longest, to be run with these registers."""
