"""The inner loop of every matrix product: rows as stored times a packed panel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from onert_llvm.irbuilder import F16, F32, I16, I32, Kernel, Val, Var, View, vec

from .bfloat.terms import RUN, Terms, add_pairs, half_sums, widened

MOST_UNROLLED, MOST_TOGETHER = 12, 10
"""The most terms that are unrolled if their number is known, and the most accumulators for which this is done: with
more, LLVM loads terms early and spills.
"""

Accumulators = Sequence[Sequence[Var]]
"""A variable for each row and each register of columns."""


class Panel(Protocol):
    """Packed terms: `panel[p, column]` is where a register of columns of term `p` begins."""

    def __getitem__(self, at: tuple[Val, int]) -> View: ...


def accumulators(k: Kernel, start: Sequence[Val], rows: int) -> list[list[Var]]:
    """Accumulators for each row, initialised to `start`, one value for each register of columns."""
    return [[k.var(s) for s in start] for _ in range(rows)]


def multiply_add(
    k: Kernel,
    acc: Accumulators,
    rows: Sequence[View],
    panel: Panel,
    depth: Val,
    split: int = 1,
    mask: Val | None = None,
    at_step: Callable[[Val], None] | None = None,
    terms: Terms = Terms.FLOAT,
    align: int = 4,
) -> None:
    """`acc[i][j] += rows[i][p] * panel[p, j]` for p below `depth`, in float32.

    With `split` > 1 there are that many partial sums: with few rows they hide the latency of the additions. `mask` says
    which lanes of a panel row's last register may be read (None: all). `at_step(p)` is emitted before each step of
    `split` terms. If `terms` are rounded to 16 bits, `depth` counts pairs; unpaired rows have twice as many. Rows are
    aligned to `align` bytes.
    """
    if terms is Terms.HALVES:
        _add_halves(k, acc, rows, panel, depth, at_step)
        return
    few = len(rows) * len(acc[0]) <= MOST_TOGETHER
    if depth.constant is not None and depth.constant <= MOST_UNROLLED and few and split == 1:
        for term in range(depth.constant):
            _step(k, acc, rows, panel, k.index(term), mask, terms, align)
        return
    sums = [acc] + [[[k.var(k.zeros(F32, k.isa.f32)) for _ in row] for row in acc] for _ in range(split - 1)]
    whole = depth - depth % split if split > 1 else depth
    with k.loop(whole, step=split, nonempty=split == 1) as p:
        if at_step is not None:
            at_step(p)
        for s, part in enumerate(sums):
            _step(k, part, rows, panel, p + s, mask, terms, align)
    if split == 1:
        return
    with k.loop(depth, whole) as p:
        _step(k, acc, rows, panel, p, mask, terms, align)
    for part in sums[1:]:
        for row, extra in zip(acc, part, strict=True):
            for x, y in zip(row, extra, strict=True):
                x.set(x.get() + y.get())


def _add_halves(
    k: Kernel,
    acc: Accumulators,
    rows: Sequence[View],
    panel: Panel,
    depth: Val,
    at_step: Callable[[Val], None] | None,
) -> None:
    """The same for pairs of float16: `RUN` pairs at a time are summed in float16, and these sums in float32."""
    halves = vec(F16, 2 * k.isa.f32)
    with k.loop(depth, step=RUN) as first:
        sums = [[k.var(k.zeros(I16, halves.lanes).bits(halves)) for _ in own] for own in acc]
        with k.loop((first + RUN).min(depth), first, nonempty=True) as p:
            if at_step is not None:
                at_step(p)
            b = [x.bits(halves) for x in _registers(k, acc, panel, p, None)]
            for row, own in zip(rows, sums, strict=True):
                a = row[p].load().splat(k.isa.f32).bits(halves)
                for bj, x in zip(b, own, strict=True):
                    x.set(k.fma(a, bj, x.get()))
        for total, own in zip(acc, sums, strict=True):
            for x, found in zip(total, own, strict=True):
                x.set(x.get() + half_sums(k, found.get()))


def add_odd(
    k: Kernel, acc: Accumulators, rows: Sequence[View], panel: Panel, depth: Val, terms: Terms = Terms.WIDENED
) -> None:
    """Add the last of an odd number of terms if only the right-hand side is pairs."""
    with k.when((depth % 2).ne(0)):
        b = [widened(x, terms)[0] for x in _registers(k, acc, panel, depth // 2, None)]
        for row, sums in zip(rows, acc, strict=True):
            _add(k, row[depth - 1], b, sums)


def add_half(k: Kernel, acc: Accumulators, places: Sequence[View], panel: Panel, p: int) -> None:
    """Add the last pair of an odd number of terms; only the first term exists at `places`."""
    b = _registers(k, acc, panel, k.index(p), None)
    for place, sums in zip(places, acc, strict=True):
        _add_pairs(k, place.load().cast(I32, signed=False).bits(F32), b, sums)


def _registers(k: Kernel, acc: Accumulators, panel: Panel, p: Val, mask: Val | None) -> list[Val]:
    """The registers of columns of a term."""
    lanes, last = k.isa.f32, len(acc[0]) - 1
    return [panel[p, j * lanes].load(lanes, mask if j == last else None) for j in range(last + 1)]


def _add(k: Kernel, place: View, b: Sequence[Val], sums: Sequence[Var]) -> None:
    a = place.load().splat(k.isa.f32)
    for bj, x in zip(b, sums, strict=True):
        x.set(k.fma(a, bj, x.get()))


def _add_pairs(k: Kernel, pair: Val, b: Sequence[Val], sums: Sequence[Var]) -> None:
    a = pair.splat(k.isa.f32)
    for bj, x in zip(b, sums, strict=True):
        x.set(add_pairs(k, a, bj, x.get()))


def _step(
    k: Kernel,
    acc: Accumulators,
    rows: Sequence[View],
    panel: Panel,
    p: Val,
    mask: Val | None,
    terms: Terms,
    align: int,
) -> None:
    b = _registers(k, acc, panel, p, mask)
    if terms.widens:
        both = [widened(x, terms) for x in b]
        for row, sums in zip(rows, acc, strict=True):
            for i in range(2):
                _add(k, row[p * 2 + i], [pair[i] for pair in both], sums)
        return
    for row, sums in zip(rows, acc, strict=True):
        if terms is Terms.FLOAT:
            _add(k, row[p], b, sums)
            continue
        _add_pairs(k, row[p].load(align=align), b, sums)
