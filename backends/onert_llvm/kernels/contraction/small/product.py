"""Fully connected layers and convolutions of bytes: two rows of activations by two columns of weights at a time.

The sums of such a block and the operands of a step fit in thirteen registers.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, Kernel, Val, Var
from onert_llvm.kernels.contraction.implicit_im2col import SLOTS as WINDOW
from onert_llvm.target.isa import Products

from .requantize import FIELDS, OneByOne, fields_of
from .steps import ROUND, UNIT, step
from .windows import copy, gather, number

ACROSS = 2
"""Columns of a block."""


class Rows(Enum):
    """Where the bytes of a row are: in the tensor; copied from it, if they begin or end where a step must not; or
    gathered from windows of a picture."""

    STRAIGHT = "straight"
    COPIED = "copied"
    WINDOWS = "windows"


@frozen
class SmallProduct(Value):
    """`C[m, n] = Σ A[m, k] · B[k, n]` of bytes; a work tile is `rows` rows, and the last one may overlap the previous.

    Weights are packed by `pack`, `columns` as in `OneByOne`. `whole`: there is at least one round of steps; `rest`
    steps follow the rounds. `pairs`: there are blocks of two columns; `odd`: there is a last single column. `words`:
    copies are word-aligned. `room` is memory for a tile's rows, `room_row` bytes each.
    """

    rows: int
    whole: bool
    rest: int
    pairs: bool
    odd: bool
    source: Rows
    words: bool
    how: OneByOne

    @property
    def slots(self) -> tuple[str, ...]:
        source = ("channels", *WINDOW) if self.source is Rows.WINDOWS else ("a", "lda")
        whole = ("rounds",) if self.whole else ()
        room = () if self.source is Rows.STRAIGHT else ("k", "room", "room_row")
        return ("b", "c", "m", "n", "ldc", *room, *whole, *source, *self.how.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        last = number(task, "m") - self.rows
        with k.loop(end, begin) as tile:
            first = (tile.cast(I32) * self.rows).min(last)
            rows = [self._row(k, task, first + r, r) for r in range(self.rows)]
            _Block(k, task, self, first, rows).run()

    def _row(self, k: Kernel, task: Task, at: Val, which: int) -> Val:
        """The address of a row's bytes."""
        if self.source is Rows.STRAIGHT:
            return k.view(task.ptr("a"), I8, 1)[at * number(task, "lda")].address
        place = k.view(task.ptr("room"), I8, 1)[number(task, "room_row") * which].address
        if self.source is Rows.WINDOWS:
            gather(k, task, at, place, self.words)
        else:
            own = k.view(task.ptr("a"), I8, 1)[at * number(task, "lda")].address
            copy(k, own, k.var(place), number(task, "k"), self.words)
        return place


class _Block:
    """Code generation for a tile, one block of columns after the other."""

    def __init__(self, k: Kernel, task: Task, product: SmallProduct, first: Val, rows: list[Val]) -> None:
        self.k, self.task, self.product, self.rows = k, task, product, rows
        self.weights = k.var(task.ptr("b"))
        self.fields = k.var(task.ptr("columns"))
        self.out = k.var(k.view(task.ptr("c"), I8, 1)[first * number(task, "ldc")].address)

    def run(self) -> None:
        n = number(self.task, "n")
        if self.product.pairs:
            with self.k.times(n.lshr(1)):
                self._block(ACROSS)
        if self.product.odd:
            self._block(1)

    def _block(self, across: int) -> None:
        k, task, product = self.k, self.task, self.product
        fields = [fields_of(k, k.view(self.fields.get(), I32, FIELDS)[j].address) for j in range(across)]
        start = [own[0].load() for own in fields]
        sums = [[k.var(x) for x in start] for _ in range(product.rows)]
        at = [k.var(row) for row in self.rows]
        if product.whole:
            with k.times(number(task, "rounds")):
                self._steps(sums, at, ROUND[self._how])
        if product.rest:
            self._steps(sums, at, product.rest)
        out, ldc = self.out.get(), number(task, "ldc")
        for r, row in enumerate(sums):
            place = k.view(k.view(out, I8, 1)[ldc * r].address, I8, 1)
            for j, total in enumerate(row):
                place[j].store(product.how.byte(task, total.get(), fields[j]))
        self.fields.set(k.view(self.fields.get(), I32, FIELDS)[across].address)
        self.out.set(k.view(out, I8, 1)[across].address)

    @property
    def _how(self) -> Products:
        assert self.k.isa.products is not None
        return self.k.isa.products

    def _steps(self, sums: list[list[Var]], at: list[Var], count: int) -> None:
        k, across = self.k, len(sums[0])
        rows, weights = [a.get() for a in at], self.weights.get()
        for at_step in range(count):
            step(k, sums, rows, weights, at_step, self.product.how.signed)
        width = UNIT[self._how] * count
        for variable, row in zip(at, rows, strict=True):
            variable.set(k.view(row, I8, 1)[width].address)
        self.weights.set(k.view(weights, I8, 1)[across * width].address)
