"""Kernels: the executable form of a sequence of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attrs import frozen

from onert.ir import Array, Context, Operation, Subgraph
from onert.ir.value import ByIdentity, Value

from .tensor import Tensors

if TYPE_CHECKING:
    from onert.ir.symbolic.instructions import Instructions


@frozen
class Group(Value):
    """Operations of a sequence that a kernel runs as one. It may write any of their results before it has read all of
    their operands, so results and operands never share memory.

    `unstored` are results that only this group uses and that the kernel never writes to memory; they get no memory.
    `threads` says which of the kernel's threads run the group while others run other groups: the first thread and the
    number of threads. None means all threads. The compiler sets it, for backends with `side_by_side`.
    """

    operations: tuple[int, ...]
    unstored: tuple[int, ...] = ()
    threads: tuple[int, int] | None = None


@frozen
class Sequence(Value):
    """Operations of one subgraph that one backend runs as a unit, in order.

    `inputs` are the operands that are read but not computed here, including constants. `outputs` are those that are
    used elsewhere or are results of the subgraph. All other operands are in the arena too, but nothing else reads them.
    `groups` is the result of the backend's `fuse`: every operation once, in the order in which the kernel runs them.
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
class Part(ByIdentity):
    """A piece of a bound sequence that can be run alone: its operations, and the call that runs them."""

    operations: tuple[int, ...]
    call: Callable[[], None]


@runtime_checkable
class HasParts(Protocol):
    """What `bind` returns if it can also be run piece by piece, so that observers can time each piece.

    Running the parts in order is equivalent to calling the whole.
    """

    @property
    def parts(self) -> tuple[Part, ...]: ...

    def __call__(self) -> None: ...


@runtime_checkable
class CopiesAfter(Protocol):
    """What `bind` returns if its runs raise no errors and can end with copies, for variables that get new values."""

    def __call__(self) -> None: ...

    def with_copies(self, pairs: Iterable[tuple[Array, Array]]) -> Callable[[], None]:
        """A call that runs the sequence and then copies the second array of each pair to the first, in this order.

        The arrays are contiguous. The two of a pair have the same size and do not overlap.
        """


Redirect = Callable[[Array], None]
"""Redirects a bound call to another array; see `Redirects`."""


@runtime_checkable
class Redirects(Protocol):
    """What `bind` returns, or what a stretched kernel's does, if its runs can be redirected to another array for an
    input or output without being bound again."""

    def redirect(self, operands: frozenset[int]) -> Redirect | None:
        """A function that makes the following runs use another array for these operands, which share one memory; None
        if that is impossible.

        The array is contiguous, has the same size, and shares no memory with anything else that runs write. The caller
        keeps it alive until it passes another one.
        """


def together(redirects: Iterable[Redirect | None]) -> Redirect | None:
    """Calls all of these; None if one of them is."""
    found = tuple(redirects)
    each = tuple(redirect for redirect in found if redirect is not None)
    if len(each) < len(found):
        return None
    if len(each) == 1:
        return each[0]

    def redirected(array: Array) -> None:
        for redirect in each:
            redirect(array)

    return redirected


class Kernel(Protocol):
    """A compiled sequence. All executions of a program share it, so it must not hold any execution's data."""

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        """A call without arguments that runs the sequence once on these tensors.

        `bind` is called once for every execution, and again whenever a buffer of one of the tensors has moved. The call
        raises RuleError or ExecutionError if elements break a rule, and never reads or writes outside its tensors.
        It may have `parts` (`HasParts`).
        """


class Stretched(Protocol):
    """What `StretchedKernel.bind` returns. It runs for the lengths given by the latest `put`."""

    @property
    def run(self) -> Callable[[], None]:
        """What `Kernel.bind` returns."""

    def put(self) -> None:
        """From now on run with the register values of this moment, which meet all conditions of the trace."""


class Following(Stretched, Protocol):
    """What `FollowingKernel.bind` returns."""

    @property
    def become(self) -> Callable[[], bool]:
        """A call that executes the instructions on the registers, which contain the lengths, and then does `put`.

        It returns False, with nothing but registers changed, if the instructions have no result for these lengths.
        """


class StretchedKernel(Protocol):
    """A kernel for all lengths that a trace covers (`Backend.stretched`), shared by executions like any other."""

    @property
    def wanted(self) -> tuple[int, ...]:
        """The indices of the trace's numbers that it needs."""

    @property
    def operands(self) -> frozenset[int]:
        """The operands whose memory it reads or writes."""

    @property
    def shaped(self) -> frozenset[int]:
        """Those of its operands whose tensors must have their current shapes when it runs."""

    def bind(self, tensors: Tensors, context: Context, numbers: Instructions, registers: Array) -> Stretched:
        """Bind the sequence to these tensors, whose memory suffices for the longest lengths, and to these registers."""


@runtime_checkable
class FollowingKernel(StretchedKernel, Protocol):
    """A stretched kernel that executes the instructions, for itself and for the others of its program."""

    def followed(self, numbers: Instructions, registers: Array) -> Callable[[], bool]:
        """A call that executes the instructions on these registers, which contain the lengths.

        It returns False if the instructions have no result for these lengths, and changes no other memory.
        """

    def bind(self, tensors: Tensors, context: Context, numbers: Instructions, registers: Array) -> Following: ...
