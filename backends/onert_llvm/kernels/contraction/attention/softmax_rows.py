"""Rows of scores whose softmax is computed as they arrive, one block after another.

The state of a row is its greatest score so far, the sum of its exponentials, and the values weighted by these; when a
greater score arrives, they are rescaled by the exponential of the difference (M. Milakov and N. Gimelshein, "Online
normalizer calculation for softmax", 2018; T. Dao and others, "FlashAttention", 2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onert_llvm.irbuilder import F32, Kernel, Val, View, transposed
from onert_llvm.irbuilder.math import exp

_LOWEST = -3.4028234663852886e38
"""The least finite float32."""


class SoftmaxRows:
    """Stack memory: the exponentials of some rows for a block of scores, and the maximum and sums of more rows."""

    def __init__(self, k: Kernel, together: int, chunk: int, rows: int) -> None:
        lanes = k.isa.f32
        self.k, self.chunk = k, chunk
        self.powers = k.view(k.scratch(F32, together * chunk), F32, chunk, 1)
        self.tops = k.view(k.scratch(F32, rows), F32, 1)
        self.sums = k.view(k.scratch(F32, rows * lanes), F32, lanes)
        self.factors = k.view(k.scratch(F32, -(-together // lanes) * lanes), F32, 1)

    def begin(self, row: Val, sink: Val | None = None) -> None:
        """Start a row, with a score that has no value if there is a `sink`."""
        k, lanes = self.k, self.k.isa.f32
        self.tops[row].store(k.f32(float("-inf")) if sink is None else sink)
        first = k.iota(F32, lanes).eq(0.0).select(k.zeros(F32, lanes) + 1.0, 0.0) if sink is not None else None
        self.sums[row].store(k.zeros(F32, lanes) if first is None else first)

    def add(self, row: Val, number: int, scores: Sequence[Val]) -> Val:
        """Store the exponentials of a row's scores as row `number`; returns the factor of its previous sums."""
        k, lanes = self.k, self.k.isa.f32
        greatest = scores[0]
        for x in scores[1:]:
            greatest = x.max(greatest)
        before = self.tops[row].load()
        top = greatest.over_lanes(Val.max).max(before)
        self.tops[row].store(top)
        top = top.max(_LOWEST)  # finite, so that differences are not NaN before any key was seen
        correction = exp(k, (before - top).splat(lanes), negative=True)
        total = self.sums[row].load(lanes) * correction
        for j, x in enumerate(scores):
            power = exp(k, x - top.splat(lanes), negative=True)
            self.powers[number, j * lanes].store(power)
            total = total + power
        self.sums[row].store(total)
        return correction

    def add_stored(self, row: Val, count: int, scores: Val, together: int) -> list[Val]:
        """The same for `count` rows from `row` on, whose `scores` are in place of the exponentials, in registers of
        which so many `together` are processed; returns the factors."""
        k, lanes = self.k, self.k.isa.f32
        with k.loop(count, nonempty=True) as number:
            own = self.powers[number]
            greatest = k.var(own[0].load(lanes))
            with k.loop(scores, step=together * lanes, nonempty=True) as at:
                for j in range(together):
                    greatest.set(own[at + j * lanes].load(lanes).max(greatest.get()))
            before = self.tops[row + number].load()
            top = greatest.get().over_lanes(Val.max).max(before)
            self.tops[row + number].store(top)
            self.factors[number].store(before - top.max(_LOWEST))
        for j in range(0, count, lanes):  # of all rows at once: one has to wait for a long chain of operations
            place = self.factors[j]
            place.store(exp(k, place.load(lanes), negative=True))
        with k.loop(count, nonempty=True) as number:
            own, top = self.powers[number], self.tops[row + number].load().max(_LOWEST).splat(lanes)
            total = k.var(self.sums[row + number].load(lanes) * self.factors[number].load().splat(lanes))
            with k.loop(scores, step=together * lanes, nonempty=True) as at:
                for j in range(together):
                    place = own[at + j * lanes]
                    power = exp(k, place.load(lanes) - top, negative=True)
                    place.store(power)
                    total.set(total.get() + power)
            self.sums[row + number].store(total.get())
        return [self.factors[i].load().splat(lanes) for i in range(count)]

    def divide(self, row: Val, out: View, count: int) -> None:
        """Divide a row of weighted values by its sum; if all scores are negative infinity, the results are NaN."""
        k, lanes = self.k, self.k.isa.f32
        inverse = k.f32(1.0) / self.sums[row].load(lanes).over_lanes(Val.__add__)
        none = self.tops[row].load().eq(float("-inf"))
        inverse = none.select(float("nan"), inverse).splat(lanes)
        for column, _, mask in groups(k, count, 1):
            place = out[column]
            place.store(place.load(lanes, mask) * inverse, mask)


def groups(k: Kernel, count: int, most: int) -> Iterator[tuple[Val, int, Val | None]]:
    """Emit loops over a row of `count` elements in groups of about as many registers, up to `most`. Yields where a
    group begins, how many registers it has, and the lanes of the last one that are within the row (None: all)."""
    lanes = k.isa.f32
    number, rest = -(-count // lanes), count % lanes
    wide = -(-number // -(-number // most))
    last = number % wide or (wide if rest else 0)
    if number > last:
        with k.loop((number - last) * lanes, step=wide * lanes) as column:
            yield column, wide, None
    if last:
        yield k.index((number - last) * lanes), last, k.mask(lanes, k.index(rest)) if rest else None


def clear(k: Kernel, row: View, count: int) -> None:
    """Set a row of `count` numbers to 0."""
    for column, _, mask in groups(k, count, 1):
        row[column].store(k.zeros(F32, k.isa.f32), mask)


def transpose_keys(k: Kernel, keys: View, panel: View, size: int, chunk: int, first: Val, last: Val) -> None:
    """Transpose a block of `chunk` keys of `size` numbers to columns of a panel; `last` is repeated behind it."""
    lanes = k.isa.f32
    with k.loop(chunk, step=lanes) as group:
        for at, _, mask in groups(k, size, 1):
            rows = [keys[(first + group + i).min(last), at].load(lanes, mask) for i in range(lanes)]
            for i, column in enumerate(transposed(rows)[: lanes if mask is None else size % lanes]):
                panel[at + i, group].store(column)
