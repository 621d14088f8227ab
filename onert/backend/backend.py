"""The contract of a backend: what a third party implements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from attrs import field, frozen

from onert.ir import CallTypes, Operation
from onert.ir.value import Value

from .kernel import Group, Kernel, Sequence, StretchedKernel
from .memory import HOST, Memory

if TYPE_CHECKING:
    from pathlib import Path

    from onert.ir.symbolic.trace import Trace

    from .emission import Blueprint, ObjectCode

API_VERSION = 2
"""The version of this contract; a backend that names another is refused with one sentence."""


@frozen
class Settings(Value):
    """The user's choices that concern backends; `extra` has keys that only one backend knows.

    With `precision` "fast" a backend may use algorithms that round more than plain sums do; with "bf16" it may round
    factors to bfloat16. `tune` is the number of seconds it may spend measuring alternatives; 0: it only uses earlier
    measurements; None: it uses none.
    """

    num_threads: int = 1
    target: str = "native"
    precision: str = "exact"
    extra: Mapping[str, str] = field(factory=dict)
    tune: float | None = None


class Backend:
    """A plugin that runs operations. Subclasses must define `name`, `supports` and `generate`.

    A class that users select by name or import path must also define `api_version`, the version of this contract that
    it was written for: an inherited value would always be that of the installed version.
    """

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str]
    single: ClassVar[bool] = False
    """Whether `generate` wants sequences of one operation each."""
    evaluates: ClassVar[bool] = False
    """Whether it evaluates operations in NumPy, which takes more time and memory than code made for them."""

    updates_in_place: ClassVar[bool] = False
    """Whether its kernels write only the updated part if the result of a partial update (`Op.overwrites`: `PartUpdate`,
    `ScatterSlices`) lies in its first operand's memory, and do nothing for a view (`Op.shares`) of the same memory."""

    extra: ClassVar[frozenset[str]] = frozenset()
    """The names of its own settings in `Settings.extra`; a name that no backend has is refused."""

    side_by_side: ClassVar[bool] = False
    """Whether its kernels run groups in parallel where `Group.threads` says so. A sequence may then have branches. Its
    groups come in a valid order; the kernel must respect the data dependencies between them, and the order of groups
    that share memory. The branches of other backends are separate sequences, run by the executor's threads."""

    serializable: ClassVar[tuple[type[Any], ...]] = ()
    """Frozen attrs classes and enumerations, beside those of `onert.ir`, that what `keep` returns may hold."""

    @property
    def memory(self) -> Memory:
        """The memory space in which this backend's tensors live."""
        return HOST

    def expect(
        self, operations: Iterable[tuple[Operation, CallTypes]], settings: Settings
    ) -> Callable[[], object] | None:
        """A model with these operations, one of each kind, was read and will probably be compiled.

        Modules or libraries that compiling them needs may be loaded now; doing nothing is allowed. A returned function
        must wait for work that was started in a thread.
        """
        return None

    def begin(self, settings: Settings) -> None:
        """Compilation is about to start: slow initialisation may start in a thread. Doing nothing is allowed."""

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        """None if this backend can run the operation on these types, else the reason why it cannot."""
        raise NotImplementedError

    def most_threads(self, operation: Operation, types: CallTypes) -> int | None:
        """The most threads that can share the operation in a kernel; None if there is no limit that matters."""
        return None

    def fuse(self, sequence: Sequence, settings: Settings) -> tuple[Group, ...]:
        """How `generate` will run the sequence: which operations as one, in which order (by default each alone).

        The memory plan depends on it: an operand's memory may be reused for the results of a later group.
        """
        return tuple(Group((at,)) for at in sequence.operations)

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        """Make the kernel of a sequence of supported operations; BackendError if that fails."""
        raise NotImplementedError

    def stretched(self, kernel: Kernel, trace: Trace) -> StretchedKernel | None:
        """A kernel of a sequence with symbolic dimensions that serves all lengths of their trace, so that a new length
        needs no new binding; None if there is none. It may add conditions to the trace.
        """
        return None

    def fingerprint(self, settings: Settings) -> str | None:
        """Everything that this backend's answers depend on, apart from the arguments: its own code, the machine.

        Programs with this backend are cached on disk under this key, and other processes load them without asking the
        backend again. None: they are not cached.
        """
        return None

    def calibrate(self, figures: Mapping[str, float]) -> bool:
        """Store the measured rates of one thread of this machine: multiplications and additions per second in products
        of "float32" and "int8" numbers, and "outer", bytes copied per second in the cache beyond a core's own.

        True if they are stored and used when programs are compiled; the fingerprint must then depend on them. OSError
        if they cannot be written.
        """
        return False

    def keep(self, kernel: Kernel) -> Any:
        """The data from which `revive` rebuilds the kernel in another process; None if it cannot be cached.

        Plain data: None, numbers, strings, bytes, arrays, element types, tuples, dictionaries, frozen sets, and values
        of classes of `onert.ir` and of those in `serializable`. A program with anything else is not cached. Arrays are
        returned read-only, starting on a cache line.
        """
        return None

    def revive(self, kept: Any, sequence: Sequence) -> Kernel:
        """Rebuild the kernel of an equal sequence from what `keep` returned."""
        raise NotImplementedError


@runtime_checkable
class EmitsObject(Protocol):
    """A backend that can also produce relocatable machine code ahead of time, for this machine or another."""

    def emit_object(self, blueprint: Blueprint, settings: Settings) -> ObjectCode:
        """The object file of a blueprint; BackendError for a target that is not known.

        Equal blueprints give equal bytes. Nothing is global in the object but the entries, the configuration and what
        `ObjectCode.functions` names.
        """


@runtime_checkable
class ShipsCode(Protocol):
    """A backend that can also generate code before it is installed, so that first runs have less to generate."""

    def ship(self, sequences: Iterable[tuple[Sequence, Settings]], target: str) -> Path:
        """Write the code of sequences for machines of a target to where the backend finds it; the file, which replaces
        the one before. BackendError for a target that is not known, or if the file cannot be written.
        """


@runtime_checkable
class ShowsCode(Protocol):
    """A backend that can also show the code of the kernels that it generated."""

    def shown(self, kernel: Kernel, form: str) -> str:
        """The code of a kernel as text, "ir" or "asm": what runs, by function; empty where it has none of its own."""
