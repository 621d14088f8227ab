"""Commands: a kernel, the values of its task's slots, and the memory it touches."""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from onert.ir import Array
from onert_llvm.abi import KernelSpec


class Area(Enum):
    """Where a pointer leads: a tensor of the model, an array that was packed for the kernel, or scratch memory."""

    OPERAND = "operand"
    CONSTANT = "constant"
    SCRATCH = "scratch"


@frozen
class Pointer:
    """`offset` bytes into an operand, a constant (by number), or the scratch memory (`index` 0)."""

    area: Area
    index: int = 0
    offset: int = 0


Slot = Pointer | int | float


@frozen
class Access:
    """Bytes that a command reads or writes."""

    pointer: Pointer
    nbytes: int
    write: bool = False


@frozen
class Command:
    """Run a kernel over `tiles` work tiles, `grain` of them at a time.

    `operation` is the first operation it stands for, by its index in the subgraph. `flops` counts multiplications and
    additions, for profiles.
    """

    spec: KernelSpec
    slots: dict[str, Slot] = field(eq=False)
    tiles: int
    grain: int
    accesses: tuple[Access, ...]
    operation: int
    flops: int = 0


@frozen(eq=False)
class Lowered:
    """What a sequence becomes: commands in order, the arrays packed for them, and bytes of scratch memory."""

    commands: tuple[Command, ...]
    constants: tuple[Array, ...]
    scratch: int = 0
