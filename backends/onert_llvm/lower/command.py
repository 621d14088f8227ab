"""Commands: a kernel, the values of its task's slots, and the memory it touches."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol

from attrs import field, frozen

from onert.ir import Array
from onert_llvm.layout import TaskLayout


class Area(Enum):
    """Where a pointer leads: a tensor of the model, an array that was packed for the kernel, scratch memory, or the
    reports of checks.
    """

    OPERAND = "operand"
    CONSTANT = "constant"
    SCRATCH = "scratch"
    REPORT = "report"


@frozen
class Pointer:
    """`offset` bytes into an operand, a constant (by number), the scratch memory or the reports (`index` 0)."""

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


class Code(Protocol):
    """What a command must know of the code that it calls: of which algorithm, under which symbol, with which slots."""

    @property
    def name(self) -> str: ...

    @property
    def symbol(self) -> str: ...

    @property
    def layout(self) -> TaskLayout: ...


@frozen
class Callee:
    """That, and nothing of how the code is made."""

    name: str
    symbol: str
    layout: TaskLayout


@frozen
class Command:
    """Run a kernel over `tiles` work tiles, `grain` of them at a time.

    `operation` is the first operation it stands for, by its index in the subgraph. `flops` counts multiplications and
    additions, for profiles.
    """

    spec: Code
    slots: dict[str, Slot] = field(eq=False)
    tiles: int
    grain: int
    accesses: tuple[Access, ...]
    operation: int
    flops: int = 0


@frozen
class Check:
    """A rule that elements must keep, looked at by a kernel: `message` with the element that broke it put in.

    Check number i has `REPORT_BYTES` of the reports, two 64-bit integers: 1 where the rule was broken, and the element.
    They are zero before a run.
    """

    message: str


REPORT_BYTES = 16


@frozen(eq=False)
class Lowered:
    """What a sequence becomes: commands in order, the arrays packed for them, bytes of scratch memory, and checks.

    `specs` are the kernels that the commands call, by symbol, as long as their code may still have to be made.
    """

    commands: tuple[Command, ...]
    constants: tuple[Array, ...]
    scratch: int = 0
    checks: tuple[Check, ...] = ()
    specs: Mapping[str, Any] = field(factory=dict)
