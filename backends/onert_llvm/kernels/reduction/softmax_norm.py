"""Normalisation of rows: softmax, log-softmax and norms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Val, View
from onert_llvm.irbuilder.math import exp, log
from onert_llvm.kernels.arithmetic.expression import Kind

from .elements import Plain
from .fold import Fold, fold_lanes


def each_rows(k: Kernel, begin: Val, end: Val) -> Iterator[list[Val]]:
    """Groups of rows, as many as registers allow, then the remaining rows one by one."""
    for row, count in k.pieces(end, 4 if k.isa.registers >= 32 else 2, begin):
        yield [row + i for i in range(count)]


def sum_of(k: Kernel, width: Val, term: Callable[[Val, Val | None], Val]) -> Val:
    """The sum of a row of terms, as a scalar."""
    (total,) = folded(k, Fold.SUM, width, [term])
    return total


Terms = Callable[[Val, Val | None], Val]


def folded(k: Kernel, fold: Fold, width: Val, rows: Sequence[Terms]) -> list[Val]:
    """A number for each of several rows of terms, computed in parallel to hide latencies."""
    start = k.zeros(F32, k.isa.f32).like(fold.start(Kind.F32))
    totals = [k.var(start) for _ in rows]

    for at, mask in k.registers(width, free=False):
        for total, term in zip(totals, rows, strict=True):
            value = term(at, mask)
            total.set(fold.join(total.get(), value if mask is None else mask.select(value, start)))
    return [fold_lanes(fold, total.get()) for total in totals]


_WAYS = 4
"""Registers of a row that are folded in parallel if rows are folded one by one."""


def folded_alone(k: Kernel, fold: Fold, width: Val, rows: Sequence[Terms]) -> list[Val]:
    """The same for one row, of which several registers are folded in parallel."""
    (term,) = rows
    start, lanes = k.zeros(F32, k.isa.f32).like(fold.start(Kind.F32)), k.isa.f32
    totals, block = [k.var(start) for _ in range(_WAYS)], width - width % (_WAYS * k.isa.f32)
    with k.loop(block, step=_WAYS * lanes) as at:
        for i, total in enumerate(totals):
            total.set(fold.join(total.get(), term(at + i * lanes, None)))
    for at, mask in k.registers(width, block, free=False):
        value = term(at, mask)
        totals[0].set(fold.join(totals[0].get(), value if mask is None else mask.select(value, start)))
    one, other = (fold.join(totals[i].get(), totals[i + 1].get()) for i in (0, 2))
    return [fold_lanes(fold, fold.join(one, other))]


@frozen
class Softmax(Value):
    """`exp(beta * (x - max)) / sum` of each row of `width`; work tiles are rows. `out` may be `in`. Without `scaled`,
    beta is 1.

    With `logarithm`, its logarithm: `beta * (x - max) - log(sum)`. With `together`, a few rows are computed in parallel
    while that many are left. With `wide`, a few registers of one row are.
    """

    logarithm: bool = False
    together: bool = True
    wide: bool = False
    scaled: bool = True

    @property
    def slots(self) -> tuple[str, ...]:
        return ("in", "step", "width", "out", "out_step", *(("beta",) if self.scaled else ()))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        if self.together:
            for rows in each_rows(k, begin, end):
                self._rows(k, task, rows)
            return
        with k.loop(end, begin) as r:
            self._rows(k, task, [r])

    def _rows(self, k: Kernel, task: Task, numbers: Sequence[Val]) -> None:
        lanes, width = k.isa.f32, task.i64("width")
        beta = task.f32("beta").splat(k.isa.f32) if self.scaled else None
        reduced = folded_alone if self.wide else folded
        rows = [task.view("in", F32, task.i64("step"), 1)[n] for n in numbers]
        outs = [task.view("out", F32, task.i64("out_step"), 1)[n] for n in numbers]

        def element(row: View) -> Terms:
            return lambda at, mask: row[at].load(lanes, mask)

        tops = [top.splat(lanes) for top in reduced(k, Fold.MAX_NUMBER, width, [element(row) for row in rows])]

        def shifted(row: View, top: Val, at: Val, mask: Val | None) -> Val:
            less = row[at].load(lanes, mask) - top
            return less if beta is None else less * beta

        def power(row: View, out: View, top: Val) -> Terms:
            def term(at: Val, mask: Val | None) -> Val:
                e = exp(k, shifted(row, top, at, mask), negative=not self.scaled)
                if not self.logarithm:
                    out[at].store(e, mask)
                return e

            return term

        totals = reduced(k, Fold.SUM, width, [power(*each) for each in zip(rows, outs, tops, strict=True)])
        if self.logarithm:
            less = [log(k, total).splat(lanes) for total in totals]
        else:
            less = [(k.f32(1.0) / total).splat(lanes) for total in totals]

        for at, mask in k.registers(width, free=False):
            for row, out, top, last in zip(rows, outs, tops, less, strict=True):
                if self.logarithm:
                    out[at].store(shifted(row, top, at, mask) - last, mask)
                else:
                    out[at].store(out[at].load(lanes, mask) * last, mask)


class Norm(Enum):
    """The divisor of a row, where `s` is its mean square.

    `LENGTH`: the square root of the sum of squares, at least `epsilon`. `ROOT_MEAN_SQUARE`: the root of `s + epsilon`.
    `LAYER`: as the latter, after subtracting the mean.
    """

    LENGTH = "length"
    ROOT_MEAN_SQUARE = "root mean square"
    LAYER = "layer"


@frozen
class Normalize(Value):
    """Each row of `width` divided by its norm, then times `gamma` and plus `beta`, if present, element by element.

    `share` is one over the width. Work tiles are rows, dense in both matrices.
    """

    norm: Norm
    gamma: bool = False
    beta: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        extra = (name for name in ("gamma", "beta") if getattr(self, name))
        return ("in", "out", "width", "share", "epsilon", *extra)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as r:
            row, out = (task.view(side, F32, task.i64("width"), 1)[r] for side in ("in", "out"))
            self._row(k, task, row, out, task.i64("width"))

    def _row(self, k: Kernel, task: Task, row: View, out: View, width: Val) -> None:
        lanes = k.isa.f32
        mean = k.zeros(F32, lanes)
        if self.norm is Norm.LAYER:
            mean = (Plain(Fold.SUM).along(k, row, width) * task.f32("share")).splat(lanes)

        def centred(at: Val, mask: Val | None) -> Val:
            found = row[at].load(lanes, mask)
            return found - mean if self.norm is Norm.LAYER else found

        def square(at: Val, mask: Val | None) -> Val:
            found = centred(at, mask)
            return found * found

        factor = self._factor(k, task, sum_of(k, width, square)).splat(lanes)

        for at, mask in k.registers(width, free=False):
            value = centred(at, mask) * factor
            if self.gamma:
                value = value * task.view("gamma", F32, 1)[at].load(lanes, mask)
            if self.beta:
                value = value + task.view("beta", F32, 1)[at].load(lanes, mask)
            out[at].store(value, mask)

    def _factor(self, k: Kernel, task: Task, squares: Val) -> Val:
        one = k.f32(1.0)
        if self.norm is Norm.LENGTH:
            return one / task.f32("epsilon").max(squares.call("sqrt"))  # NaN stays NaN
        return one / (squares * task.f32("share") + task.f32("epsilon")).call("sqrt")
