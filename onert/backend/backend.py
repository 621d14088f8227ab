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
    """What the user chose that concerns backends; `extra` holds keys that only one backend knows.

    With a `precision` of "fast" a backend may take algorithms that round more than the sums of all terms do; with
    "bf16" it may round what it multiplies to bfloat16. With `tune` it may measure for so many seconds what else it
    could choose; 0: it takes what it knows from such measurements.
    """

    num_threads: int = 1
    target: str = "native"
    precision: str = "exact"
    extra: Mapping[str, str] = field(factory=dict)
    tune: float | None = None


class Backend:
    """A plugin that runs operations. Subclass it; only `name`, `supports` and `generate` must be given.

    A class that users choose by name or import path also writes `api_version`, the version of this contract that it is
    made for: one that it inherited would be that of whatever is installed.
    """

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str]
    single: ClassVar[bool] = False
    """Whether `generate` wants sequences of one operation each."""
    evaluates: ClassVar[bool] = False
    """Whether it evaluates operations in NumPy, which takes more time and memory than code made for them."""

    updates_in_place: ClassVar[bool] = False
    """Whether its kernels run what overwrites parts (`Op.overwrites`: `PartUpdate`, `ScatterSlices`) if its result lies
    where its first operand does, and leave views alone (`Op.shares`) whose operand and result are one memory."""

    extra: ClassVar[frozenset[str]] = frozenset()
    """The names of its own settings, which `Settings.extra` may have; others are refused."""

    side_by_side: ClassVar[bool] = False
    """Whether its kernels run groups side by side where `Group.threads` says so. Then a sequence may have branches: its
    groups come in an order that is right, and a kernel keeps what one needs of another, and the order of what shares
    memory. The branches of other backends are sequences of their own, which the executor's threads run."""

    serializable: ClassVar[tuple[type[Any], ...]] = ()
    """Frozen attrs classes and enumerations, beside those of `onert.ir`, that what `keep` returns may hold."""

    @property
    def memory(self) -> Memory:
        """The memory space in which this backend's tensors live."""
        return HOST

    def expect(
        self, operations: Iterable[tuple[Operation, CallTypes]], settings: Settings
    ) -> Callable[[], object] | None:
        """A model was read that has such operations, here one of each kind, and will probably be compiled so.

        What compiling them takes beside the model itself (modules, a library) may be read now. Nothing need be done.
        What is begun in a thread is waited for in the function that is given back.
        """
        return None

    def begin(self, settings: Settings) -> None:
        """Something is about to be compiled: what takes long to start may start beside. Nothing need be done."""

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        """None if this backend can run the operation on these types, else the reason why it cannot."""
        raise NotImplementedError

    def most_threads(self, operation: Operation, types: CallTypes) -> int | None:
        """Among how many threads a kernel can share the operation; None where there is no bound that matters."""
        return None

    def fuse(self, sequence: Sequence, settings: Settings) -> tuple[Group, ...]:
        """How `generate` will run the sequence: which operations as one, in which order (each on its own by default).

        The memory plan follows it: an operand's memory may be used again for what a later group makes.
        """
        return tuple(Group((at,)) for at in sequence.operations)

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        """The kernel of a sequence of supported operations; BackendError if that fails."""
        raise NotImplementedError

    def stretched(self, kernel: Kernel, trace: Trace) -> StretchedKernel | None:
        """The kernel of a sequence with symbolic dimensions for all lengths that their trace is for, so that a new
        length asks for no new binding; None where there is none. It may make more conditions of the trace.
        """
        return None

    def fingerprint(self, settings: Settings) -> str | None:
        """Names all that this backend's answers depend on beside the questions: its own code, the machine.

        Programs that it has a part in are kept on disk under that name, and another process takes them from there
        without asking it again. None: they are not kept.
        """
        return None

    def calibrate(self, figures: Mapping[str, float]) -> bool:
        """What one thread of this machine was measured to do: multiplications and additions a second of products of
        "float32" and "int8" numbers, and "outer" bytes a second that are copied within the cache around a core's own.

        Whether that is kept for what is chosen when programs are compiled; then the fingerprint depends on it. OSError
        if it cannot be written.
        """
        return False

    def keep(self, kernel: Kernel) -> Any:
        """What `revive` makes the kernel of again in another process; None if it cannot be kept.

        Plain data: None, numbers, strings, bytes, arrays, element types, tuples, dictionaries, frozen sets, and values
        of classes of `onert.ir` and of those in `serializable`. A program with anything else is not cached. Arrays come
        back read-only, on a cache line.
        """
        return None

    def revive(self, kept: Any, sequence: Sequence) -> Kernel:
        """The kernel of an equal sequence that `keep` gave `kept` for."""
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
