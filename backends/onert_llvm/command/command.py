"""Commands: a kernel, the values of its task's slots, and the memory it touches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Protocol

from attrs import field, frozen

from onert.ir import Array
from onert.ir.value import ByIdentity, Value

from .task_layout import TaskLayout


class Area(Enum):
    """What a pointer refers to: a tensor of the model, an array packed for the kernel, scratch memory, the reports of
    checks, or the word that is not 0 once a run is to end (null in bundles, whose entry points always finish).
    """

    OPERAND = "operand"
    CONSTANT = "constant"
    SCRATCH = "scratch"
    REPORT = "report"
    STOP = "stop"


@frozen
class Pointer(Value):
    """`offset` bytes into operand number `index`, constant number `index`, the scratch memory of thread set `index`,
    the reports, or the stop word (`index` 0)."""

    area: Area
    index: int = 0
    offset: int = 0


Slot = Pointer | int | float


@frozen
class Access(Value):
    """A range of bytes that a command reads or writes."""

    pointer: Pointer
    nbytes: int
    write: bool = False

    @property
    def end(self) -> int:
        """The offset of the first line of 64 bytes after it."""
        return -(-(self.pointer.offset + self.nbytes) // 64) * 64


class Code(Protocol):
    """What a command needs to know about the code it calls: the algorithm's name, the symbol and the task layout."""

    @property
    def name(self) -> str: ...

    @property
    def symbol(self) -> str: ...

    @property
    def layout(self) -> TaskLayout: ...


@frozen
class Callee(Value):
    """The same as a plain value, independent of how the code is generated."""

    name: str
    symbol: str
    layout: TaskLayout


JUMP = Callee("jump", "onert_jumps", TaskLayout(("by", "flag", "reports", "checks", "most", "report", "stop")))
"""The code of a program step that calls no kernel: continues `by` steps on if it jumps, else with the next step.

It jumps if `flag` is null, or if the byte there is not 0, the word at `stop`, unless that is null, is 0, and none of
the `checks`, whose reports begin at `reports`, is violated. With a `report`, its second word counts the jumps; a jump
beyond `most` is not taken and sets the first word to 1 instead. Implemented by `codegen/native/jump.ll`.
"""
CONDITION = JUMP.layout.names[1:]
"""The slots that decide whether it jumps, in order."""
COPY = "copy_rows"
"""The name of the code that only copies memory."""
PROGRAM = Callee("program", "onert_program", TaskLayout(()))
"""The code of a command that runs a program on one thread: its steps in order, apart from jumps."""
MERGED = Callee("several", "onert_several", TaskLayout(()))
"""The code of a command that merges n equally long commands of one kernel: tile t is tile t // n of step t % n."""


@frozen
class Command(Value):
    """Run a kernel over `tiles` work tiles, cut into `pieces` for the threads that share them.

    `operation` is the index in the subgraph of the first operation that it stands for. `flops` counts multiplications
    and additions, for profiles. `program` holds the steps if the code is `PROGRAM` (kernels, jumps, programs) or
    `MERGED` (kernels, whose `pieces` is the number of steps). `threads` are those that run it, as in `Group.threads`.
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
"""Pieces of a command per thread: other threads can take work from a late one in eighths of its share. The total is
limited by the bits that `codegen/native/pool.ll` has for counting.
"""


_LONG = 2_400_000
"""Floating-point operations that take some 20 microseconds: longer pieces are cut further."""


def most_pieces(threads: int, each: int = _PIECES_EACH) -> int:
    """The maximum number of pieces that threads cut tiles into."""
    return min(each * threads, _MOST_PIECES) if threads > 1 else 1


def short_pieces(threads: int, flops: int, each: int = _PIECES_EACH) -> int:
    """The same for a command with `flops` floating-point operations: pieces are short, so that a thread preempted in
    the middle of one soon finishes it."""
    return most_pieces(threads, max(each, flops // _LONG // threads))


def all_steps(commands: Iterable[Command]) -> Iterator[Command]:
    """The commands, with programs replaced by their steps."""
    for command in commands:
        if command.program:
            yield from all_steps(command.program)
        else:
            yield command


def kernel_calls(commands: Iterable[Command]) -> Iterator[Command]:
    """The steps that call kernels."""
    return (command for command in all_steps(commands) if command.spec is not JUMP)


def jump(operation: int, by: int, **slots: Slot) -> Command:
    """A step in the program of `operation` that continues `by` steps on if the `slots` (those of `JUMP`) say so."""
    return Command(JUMP, {**dict.fromkeys(JUMP.layout.names, 0), "by": by, **slots}, 1, 1, (), operation)


@frozen
class Check(Value):
    """A rule for elements that a kernel checks: a sentence with `{}` for the offending element.

    `place` precedes it and contains names from the model, which may hold anything, braces too.

    Check number i has `REPORT_BYTES` of the reports, two 64-bit integers: 1 if the rule was broken, and the element.
    Reports are zero before a run.
    """

    place: str
    rule: str

    def sentence(self, element: object) -> str:
        """The error message for an element that broke the rule."""
        return f"{self.place}: {self.rule.format(element)}"


REPORT_BYTES = 16


@frozen(eq=False)
class Lowered(ByIdentity):
    """The result of lowering a sequence: commands in order, packed arrays, bytes of scratch memory, and checks.

    Each of the `teams`, sets of threads that run commands side by side, has `scratch` bytes of its own. If there are
    several, `sequential` holds the same commands in the same order, each run by all threads. `specs` are the kernels
    that the commands call, by symbol, while their code may still have to be generated.
    """

    commands: tuple[Command, ...]
    constants: tuple[Array, ...]
    scratch: int = 0
    checks: tuple[Check, ...] = ()
    specs: Mapping[str, Any] = field(factory=dict)
    teams: int = 1
    sequential: tuple[Command, ...] = ()


def _itself(pointer: Pointer) -> object:
    return pointer


def is_idle(command: Command, place: Callable[[Pointer], object] = _itself) -> bool:
    """Whether a command copies memory onto itself: a reshape whose result shares its operand's memory, if known by the
    `place` of each pointer."""
    if command.spec.name != COPY:
        return False
    slots = command.slots
    source, target = slots["source"], slots["target"]
    assert isinstance(source, Pointer)
    assert isinstance(target, Pointer)
    return place(source) == place(target) and slots["source_step"] == slots["target_step"]
