"""The backend interface that third parties implement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from attrs import field, frozen

from onert.ir import BackendError, CallTypes, Operation
from onert.ir.value import Value

from .kernel import Group, Kernel, Sequence, StretchedKernel
from .memory import HOST, Memory

if TYPE_CHECKING:
    from pathlib import Path

    from onert.ir.symbolic.trace import Trace

    from .emission import Blueprint, ObjectCode

API_VERSION = 2
"""The version of this contract. A backend written for another version is rejected with an error."""


@frozen
class Settings(Value):
    """The user's options that concern backends; `extra` holds keys that only one backend understands.

    With `precision` "fast" a backend may use algorithms that round more than plain sums do; with "bf16" it may round
    factors to bfloat16. `tune` is the number of seconds it may spend measuring alternatives; with 0 it only uses
    earlier measurements, with None it uses none.
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
    """Whether it evaluates operations in NumPy, which needs more time and memory than generated code."""

    updates_in_place: ClassVar[bool] = False
    """Whether its kernels write only the updated part if the result of a partial update (`Op.overwrites`: `PartUpdate`,
    `ScatterSlices`) shares its first operand's memory, and do nothing for a view (`Op.shares`) of that memory."""

    extra: ClassVar[frozenset[str]] = frozenset()
    """The names of its own settings in `Settings.extra`; a name that no backend declares is rejected."""

    side_by_side: ClassVar[bool] = False
    """Whether its kernels run groups in parallel as `Group.threads` says. A sequence may then have branches. Its groups
    come in a valid order; the kernel must respect the data dependencies between them, and the order of groups that
    share memory. Branches on other backends are separate sequences, which the executor's threads run."""

    serializable: ClassVar[tuple[type[Any], ...]] = ()
    """Frozen attrs classes and enumerations, besides those of `onert.ir`, that the result of `keep` may contain."""

    @property
    def memory(self) -> Memory:
        """The memory space in which this backend's tensors live."""
        return HOST

    def expect(
        self, operations: Iterable[tuple[Operation, CallTypes]], settings: Settings
    ) -> Callable[[], object] | None:
        """Called when a model with these operations (one of each kind) has been read and will probably be compiled.

        Modules or libraries that compiling them needs may be loaded now; doing nothing is allowed. If this starts
        work in a thread, return a function that waits for it.
        """
        return None

    def begin(self, settings: Settings) -> None:
        """Called when compilation is about to start. Slow initialisation may start in a thread; may do nothing."""

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        """None if this backend can run the operation on these types, else the reason why it cannot."""
        raise NotImplementedError

    def most_threads(self, operation: Operation, types: CallTypes) -> int | None:
        """The most threads that can share the operation in a kernel; None if there is no relevant limit."""
        return None

    def fuse(self, sequence: Sequence, settings: Settings) -> tuple[Group, ...]:
        """How `generate` will run the sequence: the operations it fuses, in execution order (by default each alone).

        The memory plan depends on it: an operand's memory may be reused for the results of a later group.
        """
        return tuple(Group((at,)) for at in sequence.operations)

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        """Generate the kernel of a sequence of supported operations. Raises BackendError if that fails."""
        raise NotImplementedError

    def stretched(self, kernel: Kernel, trace: Trace) -> StretchedKernel | None:
        """A kernel for a sequence with symbolic dimensions that serves all lengths of their trace, so that a new length
        needs no new binding; None if it cannot be made. May add conditions to the trace.
        """
        return None

    def fingerprint(self, settings: Settings) -> str | None:
        """Everything that this backend's results depend on besides the arguments: its own code, the machine.

        Programs with this backend are cached on disk under this key, and other processes load them without calling the
        backend again. With None they are not cached.
        """
        return None

    def calibrate(self, figures: Mapping[str, float]) -> bool:
        """Store the measured rates of one thread of this machine: multiplications and additions per second in products
        of "float32" and "int8" numbers, and "outer", bytes copied per second in the cache level beyond a core's own.

        Returns True if they are stored and used when programs are compiled; the fingerprint must then depend on them.
        Raises OSError if they cannot be written.
        """
        return False

    def keep(self, kernel: Kernel) -> Any:
        """The data from which `revive` rebuilds the kernel in another process; None if it cannot be cached.

        Plain data: None, numbers, strings, bytes, arrays, element types, tuples, dictionaries, frozen sets, and values
        of the classes in `onert.ir` and `serializable`. A program with anything else is not cached. `revive` receives
        arrays read-only and aligned to a cache line.
        """
        return None

    def revive(self, kept: Any, sequence: Sequence) -> Kernel:
        """Rebuild a kernel from what `keep` returned, for a sequence equal to the original.

        By default it is generated again, with the default settings; for kernels of which nothing else needs to be kept.
        """
        return self.generate(sequence, Settings())

    def keep_stretched(self, kernel: StretchedKernel) -> Any:
        """The data from which `revive_stretched` rebuilds what `stretched` returned, of the same types as that of
        `keep`; None if it cannot be cached. The kernel of the same sequence for one set of lengths is kept beside it.
        """
        return None

    def revive_stretched(self, kept: Any, kernel: Kernel) -> StretchedKernel:
        """Rebuild a stretched kernel from what `keep_stretched` returned; `kernel` is what `revive` returned for its
        sequence. Raises BackendError if that cannot be done: the program is compiled again then."""
        raise BackendError(f"backend {self.name!r} cannot revive the stretched kernels that it keeps")


class Sequenced(Backend):
    """A backend whose kernels are made from their sequences alone, so that a cache keeps nothing else of them."""

    def keep(self, kernel: Kernel) -> tuple[()]:
        return ()

    def keep_stretched(self, kernel: StretchedKernel) -> tuple[()]:
        return ()


@runtime_checkable
class EmitsObject(Protocol):
    """A backend that can also produce relocatable machine code ahead of time, for this machine or another."""

    def emit_object(self, blueprint: Blueprint, settings: Settings) -> ObjectCode:
        """The object file of a blueprint. Raises BackendError for an unknown target.

        Equal blueprints give equal bytes. The object's only global symbols are the entries, the configuration and
        the names in `ObjectCode.functions`.
        """


@runtime_checkable
class ShipsCode(Protocol):
    """A backend that can also generate code before it is installed, so that first runs have less to generate."""

    def ship(self, sequences: Iterable[tuple[Sequence, Settings]], target: str) -> Path:
        """Write the code of sequences for machines of a target to the file where the backend looks for it, replacing an
        existing one, and return its path. Raises BackendError if the target is unknown or the file cannot be written.
        """


@runtime_checkable
class ShowsCode(Protocol):
    """A backend that can also show the code of the kernels that it generated."""

    def shown(self, kernel: Kernel, form: str) -> str:
        """The text of a kernel's code, as "ir" or "asm": the functions that run; empty if it has no code of its own."""
