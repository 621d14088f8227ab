"""Commands: a kernel, the values of its task's slots, and the memory it touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Protocol

from attrs import field, frozen

from onert.ir import Array
from onert.ir.value import Told, Value

from .task_layout import TaskLayout


class Area(Enum):
    """Where a pointer leads: a tensor of the model, an array that was packed for the kernel, scratch memory, or the
    reports of checks.
    """

    OPERAND = "operand"
    CONSTANT = "constant"
    SCRATCH = "scratch"
    REPORT = "report"


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


JUMP = Callee("jump", "onert_jumps", TaskLayout(("by", "flag", "reports", "checks", "most", "report")))
"""The code of a step of a program that calls no kernel: the next step is `by` steps on, or one if it does not jump.

It jumps if there is no `flag` (0), or if the byte there is not 0 and none of so many `checks`, whose reports begin at
`reports`, was found broken. With a `report` the second word of this counts how often it jumped: when that would be more
than `most` times, the first word becomes 1, and it does not. `codegen/native/jump.ll` decides this.
"""
CONDITION = JUMP.layout.names[1:]
"""The slots that decide it, in order."""
COPY = "copy_rows"
"""The name of the code that copies memory and does nothing else."""
PROGRAM = Callee("program", "onert_program", TaskLayout(()))
"""The code of a command that runs a program on one thread: its steps one after the other, but for jumps."""
SEVERAL = Callee("several", "onert_several", TaskLayout(()))
"""The code of a command that stands for n of one kernel, as many tiles each: tile t is tile t // n of step t % n."""


@frozen
class Command(Value):
    """Run a kernel over `tiles` work tiles, cut into `pieces` for threads that share them.

    `operation` is the first operation it stands for, by its index in the subgraph. `flops` counts multiplications and
    additions, for profiles. `program` are the steps of one whose code is `PROGRAM`: kernels, jumps, programs; or of one
    whose code is `SEVERAL`: kernels, whose `pieces` are how many steps there are. `threads` are those that run it, as
    `Group.threads` has them.
    """

    spec: Code
    slots: dict[str, Slot] = field(eq=False)
    tiles: int
    pieces: int
    accesses: tuple[Access, ...]
    operation: int
    flops: int = 0
    program: tuple[Command, ...] = ()
    threads: tuple[int, int] | None = None


_PIECES_EACH, _MOST_PIECES = 8, (1 << 16) - 1
"""Pieces of a command for each thread: what others can take of one that is late is an eighth of its share at a time. In
all they are no more than what `codegen/native/pool.ll` has bits to count.
"""


_LONG = 2_400_000
"""Multiplications and additions of floats, some 20 microseconds: longer pieces are cut further."""


def most_pieces(threads: int, each: int = _PIECES_EACH) -> int:
    """Into how many pieces threads cut any number of tiles at most."""
    return min(each * threads, _MOST_PIECES) if threads > 1 else 1


def short_pieces(threads: int, flops: int, each: int = _PIECES_EACH) -> int:
    """The same for a command of so many operations on floats: who loses its processor in a piece soon ends it."""
    return most_pieces(threads, max(each, flops // _LONG // threads))


def all_steps(commands: Iterable[Command]) -> Iterator[Command]:
    """The commands, with the steps of programs in their place."""
    for command in commands:
        if command.program:
            yield from all_steps(command.program)
        else:
            yield command


def kernel_calls(commands: Iterable[Command]) -> Iterator[Command]:
    """Those of all steps that call kernels."""
    return (command for command in all_steps(commands) if command.spec is not JUMP)


def jump(operation: int, by: int, **slots: Slot) -> Command:
    """A step of operation's program that goes `by` steps on, if `slots` say so: those of `JUMP`."""
    return Command(JUMP, {**dict.fromkeys(JUMP.layout.names, 0), "by": by, **slots}, 1, 1, (), operation)


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
class Lowered(Told):
    """What a sequence becomes: commands in order, the arrays packed for them, bytes of scratch memory, and checks.

    There is so much scratch memory for each of the `lanes`, sets of threads that run commands side by side. Where there
    are such, `in_turn` are the same operations' commands in the same order, for all threads one after the other.
    `specs` are the kernels that the commands call, by symbol, as long as their code may still have to be made.
    """

    commands: tuple[Command, ...]
    constants: tuple[Array, ...]
    scratch: int = 0
    checks: tuple[Check, ...] = ()
    specs: Mapping[str, Any] = field(factory=dict)
    lanes: int = 1
    in_turn: tuple[Command, ...] = ()
