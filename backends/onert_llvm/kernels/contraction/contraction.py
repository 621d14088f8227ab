"""Matrix products whose rows, element types and epilogue are parameters.

Fully connected layers and convolutions of floats, bytes and 16-bit numbers differ in three values: an operand says
where the rows of A are stored, a micro-kernel (`Terms`) how its element types are multiplied and summed, and an ending
what is stored of the sums. Each contributes the slots that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Type, Val, View

from .extremes import Extremes
from .register_tile import SLOTS, Block, Row, Rows, Tile, each_block

Sums = Sequence[Sequence[Val]]
"""The sums of each row of a tile, by register of columns; or other values of each row."""

Finish = Callable[[Row, Val], Val]
"""Emits what is stored of a row's sums in one register of columns."""

REGISTERS_TOGETHER = 4


class Ending(Value):
    """How accumulators are initialised and what is stored of them.

    `corrected`: rows come with a correction to subtract, because weights have a zero point. If the epilogue is
    `is_cheap`, it is unrolled over the rows of a tile.
    """

    __slots__ = ()

    @property
    def element(self) -> Type:
        """The type of stored elements."""
        return F32

    @property
    def is_cheap(self) -> bool:
        return False

    @property
    def corrected(self) -> bool:
        return False

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that it adds to a task."""
        return ()

    def observer(self, k: Kernel) -> Extremes | None:
        """Observes all stored values, if their range is needed."""
        return None

    def begin(self, k: Kernel, task: Task, block: Block, vector: int) -> Val:
        """The initial accumulator of one of the tile's registers of columns."""
        raise NotImplementedError

    def add_residual(self, k: Kernel, task: Task, block: Block, sums: Sums) -> Sums:
        """The sums after adding what applies to the whole tile."""
        return sums

    def finisher(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finish]:
        """For each of the tile's registers of columns, the emitter of the stored value."""
        raise NotImplementedError

    def by_fours(self, k: Kernel) -> bool:
        """Whether four registers of sums are stored as one register of bytes, through `wide` and then `narrow`."""
        return False

    def wide(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finish]:
        """For each of the tile's registers of columns, the emitter of the 32-bit values of its sums."""
        raise NotImplementedError

    def narrow(self, k: Kernel, task: Task) -> Callable[[Sequence[Val]], Val]:
        """Packs four registers of such values, in order, into one register of bytes."""
        raise NotImplementedError


@frozen(eq=False)
class Run:
    """Adjacent terms of all rows of a tile: where they begin, how many there are, and their tap.

    `filled` is how many may be read of each row: those beyond `depth` are multiplied by zeros.
    """

    rows: list[View]
    depth: Val
    tap: Val | None = None
    filled: Val | None = None


@frozen(eq=False)
class Reading:
    """How the terms of some rows are read: a loop over their runs, of `depth` terms each.

    Without taps there is one run, and `depth` is None. `single` returns the same for one row of the tile, by its number
    in the tile, and `at` all rows at a tap.
    """

    depth: Val | None
    each: Callable[[], AbstractContextManager[Run]]
    single: Callable[[Val], Reading] | None = None
    at: Callable[[Val], list[View]] | None = None


class Terms(Value):
    """A micro-kernel: what the inner loop reads, multiplies and adds; `element` is the element type of the rows."""

    __slots__ = ()

    @property
    def slots(self) -> tuple[str, ...]:
        return ()

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def element(self) -> Type:
        raise NotImplementedError

    @property
    def other(self) -> Type:
        """The element type of the right-hand side if it is not packed."""
        return self.element

    def group(self, k: Kernel) -> int:
        """The number of adjacent terms that are multiplied together."""
        return 1

    def sums(
        self, k: Kernel, task: Task, tile: Tile, block: Block, begin: Callable[[int], Val], reading: Reading
    ) -> Sums:
        """The sums of a tile's rows; accumulators of each register of columns start at `begin`."""
        raise NotImplementedError

    def corrections(self, k: Kernel, task: Task, block: Block, reading: Reading) -> Sums:
        """For each row, what must be subtracted from its products because weights have a zero point."""
        return ()


class Operand(Protocol):
    """Describes where the rows of A are stored."""

    @property
    def name(self) -> str: ...

    @property
    def slots(self) -> tuple[str, ...]: ...

    def read(self, k: Kernel, task: Task, block: Rows, terms: Terms) -> Reading:
        """Describe how some rows are read."""


@frozen
class Contraction(Value):
    """`C[m, n] = ending(Σ A[m, k] · B[k, n])`; rows of C are `ldc` elements apart; B is packed as the terms need it."""

    tile: Tile
    operand: Operand
    terms: Terms
    ending: Ending

    @property
    def name(self) -> str:
        return f"{self.operand.name}_{self.terms.name}"

    @property
    def slots(self) -> tuple[str, ...]:
        parts = (self.tile, self.operand, self.terms, self.ending)
        return ("b", "c", *SLOTS, "ldc", *(slot for part in parts for slot in part.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        seen = self.ending.observer(k)

        def body(block: Block) -> None:
            reading = self.operand.read(k, task, block, self.terms)
            multiply(k, task, self.tile, block, self.terms, self.ending, reading, seen)

        each_block(k, task, begin, end, self.tile, body)
        if seen is not None:
            seen.write(k, task, begin, end)


def multiply(
    k: Kernel,
    task: Task,
    tile: Tile,
    block: Block,
    terms: Terms,
    ending: Ending,
    reading: Reading,
    seen: Extremes | None = None,
) -> None:
    """Emit one tile from its first term to memory; `seen` observes the stored values."""
    more = terms.corrections(k, task, block, reading) if ending.corrected else ()
    sums = terms.sums(k, task, tile, block, lambda j: ending.begin(k, task, block, j), reading)
    store(k, task, block, ending, sums, more, seen)


def store(
    k: Kernel, task: Task, block: Block, ending: Ending, sums: Sums, more: Sums = (), seen: Extremes | None = None
) -> None:
    """Store the sums of a tile; `more` are further values of each row."""
    sums = ending.add_residual(k, task, block, sums)
    if block.count > 1 and ending.by_fours(k):
        _store_by_fours(k, task, block, ending, sums, more)
        return
    finished = ending.finisher(k, task, block)
    c = task.view("c", ending.element, task.i64("ldc"), 1)

    def column(j: int) -> Callable[[Row, Val], None]:
        final, mask = finished(j), block.masks[j]

        def write(row: Row, sums: Val) -> None:
            value = final(row, sums)
            row.place(c, j).store(value, mask)
            if seen is not None:
                seen.see(value, mask)

        return write

    block.finish(sums, column, ending.is_cheap, more)


def _store_by_fours(k: Kernel, task: Task, block: Block, ending: Ending, sums: Sums, more: Sums) -> None:
    """Store four registers at once: of one row, or of as many rows as together have four.

    The last row is repeated if fewer are left, and the last register of three.
    """
    rows, wide, narrow = block.results(more), ending.wide(k, task, block), ending.narrow(k, task)
    c = task.view("c", ending.element, task.i64("ldc"), 1)
    for first in range(0, block.vectors, REGISTERS_TOGETHER):
        columns = range(first, min(first + REGISTERS_TOGETHER, block.vectors))
        found = []
        for j in columns:
            final = wide(j)
            found.append([final(row, own[j]) for row, own in zip(rows, sums, strict=True)])
        together = REGISTERS_TOGETHER // len(columns)
        size = k.isa.f32 * REGISTERS_TOGETHER // together
        mask = block.among(first, len(columns), REGISTERS_TOGETHER // together)
        apart = mask is not None and not k.isa.free_masks
        for top in range(0, block.count, together):
            values = [own[min(i, block.count - 1)] for i in range(top, top + together) for own in found]
            whole = narrow([values[min(i, len(values) - 1)] for i in range(REGISTERS_TOGETHER)])
            for i, row in enumerate(rows[top : top + together]):
                if apart:
                    for number, j in enumerate(columns):
                        place = i * size + number * k.isa.f32
                        row.place(c, j).store(whole.shuffle(range(place, place + k.isa.f32)), block.masks[j])
                    continue
                part = whole if together == 1 else whole.shuffle(range(i * size, (i + 1) * size))
                row.place(c, first).store(part, mask)
