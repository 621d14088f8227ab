"""Commands: a kernel, the values of its task's slots, and the memory it touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Protocol

from attrs import field, frozen

from onert.ir import Array
from onert.ir.value import Value

from .task_layout import TaskLayout


class Area(Enum):
    """Where a pointer leads: a tensor of the model, an array that was packed for the kernel, scratch memory, the
    reports of checks, or the commands that a command runs.
    """

    OPERAND = "operand"
    CONSTANT = "constant"
    SCRATCH = "scratch"
    REPORT = "report"
    PROGRAM = "program"


@frozen
class Pointer(Value):
    """`offset` bytes into an operand, a constant or the scratch memory of some threads (by number), or one of the other
    areas (`index` 0)."""

    area: Area
    index: int = 0
    offset: int = 0


Slot = Pointer | int | float


@frozen
class Access(Value):
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
class Callee(Value):
    """That, and nothing of how the code is made."""

    name: str
    symbol: str
    layout: TaskLayout


@frozen
class Command(Value):
    """Run a kernel over `tiles` work tiles, cut into `pieces` for threads that share them.

    `operation` is the first operation it stands for, by its index in the subgraph. `flops` counts multiplications and
    additions, for profiles. `programs` are the commands that the kernel runs itself, on its own thread. `threads` are
    those that run it, as `Group.threads` has them.
    """

    spec: Code
    slots: dict[str, Slot] = field(eq=False)
    tiles: int
    pieces: int
    accesses: tuple[Access, ...]
    operation: int
    flops: int = 0
    programs: tuple[tuple[Command, ...], ...] = ()
    threads: tuple[int, int] | None = None


_PIECES_EACH, _MOST_PIECES = 8, (1 << 16) - 1
"""Pieces of a command for each thread: what others can take of one that is late is an eighth of its share at a time. In
all they are no more than what `codegen/native/pool.ll` has bits to count.
"""


def pieces(tiles: int, threads: int) -> int:
    """Into how many pieces threads cut so many tiles."""
    return min(tiles, _PIECES_EACH * threads, _MOST_PIECES) if threads > 1 else 1


def all_commands(commands: Iterable[Command]) -> Iterator[Command]:
    """The commands, each followed by those that it runs."""
    for command in commands:
        yield command
        for program in command.programs:
            yield from all_commands(program)


@frozen
class Check(Value):
    """A rule that elements must keep, looked at by a kernel: a sentence with `{}` for the element that broke it.

    The place, before it, has names that the model gives: they may hold anything, braces too.

    Check number i has `REPORT_BYTES` of the reports, two 64-bit integers: 1 where the rule was broken, and the element.
    They are zero before a run.
    """

    place: str
    rule: str

    def sentence(self, element: object) -> str:
        """What is said of an element that broke the rule."""
        return f"{self.place}: {self.rule.format(element)}"


REPORT_BYTES = 16


@frozen(eq=False)
class Lowered:
    """What a sequence becomes: commands in order, the arrays packed for them, bytes of scratch memory, and checks.

    There is so much scratch memory for each of the `lanes`, sets of threads that run commands side by side.
    `specs` are the kernels that the commands call, by symbol, as long as their code may still have to be made.
    """

    commands: tuple[Command, ...]
    constants: tuple[Array, ...]
    scratch: int = 0
    checks: tuple[Check, ...] = ()
    specs: Mapping[str, Any] = field(factory=dict)
    lanes: int = 1
