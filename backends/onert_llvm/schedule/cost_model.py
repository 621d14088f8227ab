"""Schedules:

which tile and work split a shape gets on a target. Pure functions of both, nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice, product
from math import inf
from operator import itemgetter

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array
from onert.ir.symbolic.trace import are_same, decided, hint, is_symbolic, maximum, minimum
from onert.ir.value import Value
from onert_llvm.kernels.contraction.register_tile import LINE, Columns, Tile, columns
from onert_llvm.target.isa import Isa
from onert_llvm.target.machines import Machine, machine, of

from .tile_cycles import SPLITS, block_cycles, displaced_cycles, fits, lanes_to_choose, register_tiles, worth_code

WORTH_NO_CODE, _WORTH_NO_INTEGER_CODE, _LITTLE_TIME = 0.10, 0.05, 300.0
"""By what part, or by how many cycles, a product may take longer with a tile that there is code for already.

With these whole networks lose a hundredth at most; integers would lose more, as more of their layers could share.
"""

_WIDEST_PADDED = 5
"""Registers of a panel at most that is computed whole, so that five do not make six or eight."""

_LEAST_AHEAD = 8192
"""Bytes of a panel for which it is worth asking before they are read."""

MANY_REGISTERS = 32
"""So many registers, and a processor has room for four rows by three registers of columns twice."""

_MANY_ROWS = 16
"""Rows of a product from which on each sum is added in one accumulator, whatever else its shape is."""

_ANY = of("")
"""The processor that says in how many accumulators a product of fewer rows adds each sum. This decides bits, so it is
the same on every processor.
"""

_WORTH_SAME_ORDER = 1.02
"""How many times longer a product of few rows may take so that it adds in the same order as others."""

_WIDE, _NARROW = (0, 1, 2), (1, 0, 2)
"""Which of the `SPLITS` are tried one after the other: most numbers of rows add each sum in one accumulator, but in two
where there is one register of columns.
"""

_FEW_ROWS, _MAKING, _ROWS_OF_MADE = 4, 1.5, 192
"""Rows from which weights made of codes are scaled, what making them takes in rows, how many rows share made ones."""

_OF_SECOND_CACHE = 4
"""By what the second cache is divided for the bytes of the left operand that a work tile goes over again and again."""

_AGAIN = 0.25
"""What reading a panel again takes for each work tile, in row blocks."""

_CUTS, _SHORT, LONG = 12, 16, 1_200_000
"""Work tiles of floats for each thread, so that who loses its processor in the middle of one soon ends it, where they
have so many row blocks at least, beside which reading panels again takes little, and so many products.
"""

_UNLIKE = 0.05
"""By what part a cut in the wrong direction is slower."""

_REMEMBERED = 256
"""Shapes whose tiles stay estimated: layers are asked for more than once, and many are alike."""


@frozen
class Work(Value):
    """How rows are cut into work tiles: `mc` rows each, `tiles` in all (of all panels)."""

    mc: int
    tiles: int


@frozen
class Shape(Value):
    """A product of `m` rows, which lie so many bytes `apart` (0: unknown), `n` columns and `k` terms.

    Tiles of 1, 2, ... rows add these parts of the terms (`met`), all of them if none are given.
    """

    m: int
    n: int
    k: int
    integer: bool = False
    apart: int = 0
    met: tuple[float, ...] = ()


def product_tile(m: int, n: int, k: int, isa: Isa, integer: bool = False) -> Tile:
    """The tile for a product of `m` rows, `n` columns and `k` terms: the fewest estimated cycles."""
    shape = _as_of(Shape(m, n, k, integer), isa, False)
    return _fitting(next(_tiles(shape, n, isa, False)), m)


def packed_tile(shape: Shape, isa: Isa, known: Collection[Tile] = ()) -> Tile:
    """The tile for a product whose right side is packed.

    One that is `known`, so that there is code for it, is taken where it is estimated to be slower by little at most. It
    adds in the same order: results do not depend on what else there is.
    """
    padded = isa.free_masks
    rows, n, shape = shape.m, shape.n, _as_of(shape, isa, padded)
    part = _WORTH_NO_INTEGER_CODE if shape.integer else WORTH_NO_CODE
    best, *others = _tiles(shape, n, isa, padded, part)
    return _fitting(best if best in known else next((tile for tile in others if tile in known), best), rows)


def product_cycles(shape: Shape, isa: Isa) -> float:
    """The estimated cycles of a product whose right side is packed, each sum in one accumulator, with the best tile."""
    return min(_estimated(shape, isa, isa.free_masks, machine(isa), 1))[0]


def lanes_for(shape: Shape, isa: Isa) -> Isa:
    """The target, or its half registers where a product of many rows with packed weights is much faster with these.

    Sizes may be symbolic: results have the same bits either way.
    """
    lanes = lanes_to_choose(isa)
    if len(lanes) == 1 or is_symbolic(shape.n) or hint(shape.m) < _MANY_ROWS:
        return isa
    found = evolve(shape, m=hint(shape.m), k=hint(shape.k), apart=hint(shape.apart))
    return min(lanes, key=lambda each: worth_code(each, product_cycles(found, each)))


def near_tiles(shape: Shape, isa: Isa, most: int) -> list[Tile]:
    """So many tiles at most for a product whose right side is packed, by estimated cycles; results keep their bits."""
    padded = isa.free_masks
    tiles = _tiles(_as_of(shape, isa, padded), shape.n, isa, padded)
    return [_fitting(tile, shape.m) for tile in islice(tiles, most)]


def recut(shape: Shape, tile: Tile, panels: int, work: Work) -> list[Work]:
    """Cuts of rows into work tiles of half as many rows, and of twice as many; results have the same bits."""
    rows = {max(1, work.mc // tile.mr // 2) * tile.mr, min(2 * work.mc, -(-shape.m // tile.mr) * tile.mr)}
    return [Work(mc, -(-shape.m // mc) * panels) for mc in sorted(rows) if mc != work.mc]


def _fitting(tile: Tile, rows: int) -> Tile:
    """The tile, for products of no fewer rows than it has."""
    require(tile.mr <= rows)
    return tile


def _as_of(shape: Shape, isa: Isa, padded: bool) -> Shape:
    """A shape whose rows may be symbolic, with the rows of the moment: other numbers of rows that the schedule is used
    for are those whose best tiles add in the same order, because results do not depend on what ran before.
    """
    found = evolve(shape, m=hint(shape.m), n=hint(shape.n), k=hint(shape.k), apart=hint(shape.apart))
    if shape.integer or not any(map(is_symbolic, (shape.m, shape.n, shape.k))):
        return found  # sums of integers are the same in any order
    if found.m >= _MANY_ROWS:
        require(shape.m >= _MANY_ROWS)
    else:
        _decide(shape, isa, padded)
    return found


def _decide(shape: Shape, isa: Isa, padded: bool) -> None:
    """Make it a condition that sums are added in as many accumulators, by a table for the numbers that are open."""
    opened, places = list[int](), list[tuple[int, bool]]()
    for size in (shape.m, shape.n, shape.k):
        if not is_symbolic(size):
            places.append((size, False))
            continue
        at = next((at for at, other in enumerate(opened) if are_same(size, other)), len(opened))
        opened += [size] * (at == len(opened))
        places.append((at, True))
    decided(_SplitAlong(tuple(places), isa, padded), *opened)


def require(holds: bool) -> None:
    """Make it a condition of the schedule where sizes are symbolic: it holds for the lengths of the moment."""
    if not holds:
        raise ValueError("a schedule does not suit the shape that it was made for")


@frozen
class _Split(Value):
    """In how many accumulators a product of so many rows, columns and terms of floats adds each sum."""

    isa: Isa
    padded: bool

    def __call__(self, m: int, n: int, k: int) -> int:
        if m >= _MANY_ROWS:
            return 1
        shape, isa, padded = Shape(m, n, k), self.isa, self.padded
        found = [min(_estimated(shape, isa, padded, _ANY, split))[0] for split in SPLITS]
        most = min(found) * _WORTH_SAME_ORDER
        return next(SPLITS[at] for at in (_NARROW if n <= isa.f32 else _WIDE) if found[at] <= most)


@frozen
class _SplitAlong(Value):
    """The same where some of rows, columns and terms are open: `sizes` have which of the lengths, where a flag says so,
    or the number."""

    sizes: tuple[tuple[int, bool], ...]
    isa: Isa
    padded: bool

    def __call__(self, *lengths: int) -> int:
        return _Split(self.isa, self.padded)(*(lengths[size] if is_open else size for size, is_open in self.sizes))

    def results(self, *counts: int) -> Array:
        """The results for all lengths below these counts, of all tiles at once."""
        lengths = np.indices(counts)
        m, n, k = (lengths[size] if is_open else np.full(counts, size) for size, is_open in self.sizes)
        few = m < _MANY_ROWS
        results = np.ones(counts, np.int64)
        results[few] = self._of_few(m[few], n[few], k[few])
        return results

    def _of_few(self, m: Array, n: Array, k: Array) -> Array:
        """The results for less than many rows."""
        isa = self.isa
        found = np.full((len(SPLITS), len(m)), inf)
        for (at, split), (mr, wide) in product(
            enumerate(SPLITS), register_tiles(isa, False, _WIDEST_PADDED if self.padded else 4)
        ):
            if not fits(mr, wide, split, isa):
                continue
            full, rest = np.divmod(n, wide * isa.f32)
            last = np.where(rest == 0, 0, wide if self.padded else -(-rest // isa.f32))
            across = full * block_cycles(mr, wide, k, _ANY, split=split)
            for vectors in range(1, wide + 1):
                across = across + np.where(last == vectors, block_cycles(mr, vectors, k, _ANY, split=split), 0.0)
            found[at] = np.minimum(found[at], np.where(mr <= m, -(-m // mr) * across, inf))
        alike = found <= found.min(0) * _WORTH_SAME_ORDER
        narrow, wide = (np.take(np.take(SPLITS, order), np.argmax(alike[list(order)], 0)) for order in (_NARROW, _WIDE))
        splits: Array = np.where(n <= isa.f32, narrow, wide)
        return splits


def packed_rows(shape: Shape, isa: Isa) -> tuple[tuple[float, int], ...]:
    """Of a product of floats whose right side is packed, for each tile: the estimated cycles of a row of tiles, and how
    many rows it has.
    """
    cpu, padded = machine(isa), isa.free_masks
    return tuple(
        (min(_across(shape, isa, cpu, padded, mr, wide, split) for split in SPLITS if fits(mr, wide, split, isa)), mr)
        for mr, wide in register_tiles(isa, False, _WIDEST_PADDED if padded else 4)
    )


def _tiles(shape: Shape, n: int, isa: Isa, padded: bool, part: float = inf) -> Iterator[Tile]:
    """The tiles that suit, by estimated cycles, of which they take so much more at most than the first one.

    `n` are the columns as they were given: how a tile that is not padded cuts them holds for some numbers only.
    """
    split = 1 if shape.integer else _Split(isa, padded)(shape.m, shape.n, shape.k)
    choices = sorted(_estimated(shape, isa, padded, machine(isa), split), key=itemgetter(0))
    least = choices[0][0]
    for cycles, mr, wide in choices:
        if cycles <= least + max(least * part, _LITTLE_TIME):
            yield _tile(shape, isa, mr, Columns(wide, padded=True) if padded else columns(n, wide, isa), split)


@lru_cache(_REMEMBERED)
def _estimated(shape: Shape, isa: Isa, padded: bool, cpu: Machine, split: int) -> tuple[tuple[float, int, int], ...]:
    """All tiles that add each sum in so many accumulators: estimated cycles, rows and registers of columns.

    No size is symbolic: what is remembered is no condition of another program.
    """
    if shape.m < _MANY_ROWS:  # as in `_across`
        shape = evolve(shape, met=())
    return tuple(
        (-(-shape.m // mr) * _across(shape, isa, cpu, padded, mr, wide, split), mr, wide)
        for mr, wide in register_tiles(isa, shape.integer, _WIDEST_PADDED if padded else 4)
        if mr <= shape.m and fits(mr, wide, split, isa)
    )


def _across(shape: Shape, isa: Isa, cpu: Machine, padded: bool, mr: int, wide: int, split: int) -> float:
    """The estimated cycles of a row of tiles over all columns."""
    full, rest = divmod(shape.n, wide * isa.f32)
    steps = shape.k / isa.group if shape.integer else shape.k
    last = 0 if not rest else wide if padded else -(-rest // isa.f32)
    again = displaced_cycles(mr, steps, shape.apart, cpu) if shape.m >= _MANY_ROWS else 0.0
    cycles = full * (block_cycles(mr, wide, steps, cpu, shape.integer, split) + again)
    if last:
        cycles += block_cycles(mr, last, steps, cpu, shape.integer, split) + again
    if not shape.met:
        return cycles
    weights = 4 * shape.k * shape.n  # which few rows would wait for
    far = weights / (cpu.far_bytes * cpu.unfetched) if weights > cpu.second_cache else 0.0
    return shape.met[mr - 1] * max(cycles, far)


def _tile(shape: Shape, isa: Isa, mr: int, cut: Columns, split: int) -> Tile:
    wide = cut.widest
    blocks = -(-shape.m // mr)
    once = blocks == 1 and not shape.integer
    stream = machine(isa).stream if once else 0
    # A padded tile fetches in any case, so that short products share the code of long ones.
    small = 4 * shape.k * wide * isa.f32 < _LEAST_AHEAD and (wide == 1 or not cut.padded)
    none = shape.integer or small or (once and not stream)
    ahead = 0 if none else wide if once else min(4, -(-wide // blocks))
    return Tile(mr, cut, split, ahead * split, stream if ahead else 0)


def run_tile(m: int, n: int, isa: Isa) -> Tile:
    """The tile for a product of bytes whose runs of terms are scaled: it has whole sums and sums of floats at once.

    One row has more columns, so that its sums do not wait for one another.
    """
    large = isa.registers >= MANY_REGISTERS
    rows = 4 if large else 2
    several = hint(m) >= rows
    require(m >= rows if several else m < rows)
    return Tile(rows, columns(n, 3 if large else 2, isa)) if several else Tile(1, columns(n, 4 if large else 3, isa))


def code_tile(shape: Shape, isa: Isa) -> tuple[Tile, bool, bool]:
    """The tile for a product of floats with codes, whether its rows are so few that sums of runs are scaled, and
    whether they are so many that a panel of weights is made before they meet it.

    All of them have as many columns, so products of any number of rows share their weights.
    """
    rows, large = hint(shape.m), isa.registers >= MANY_REGISTERS
    few, many = rows < _FEW_ROWS, rows >= _MANY_ROWS
    require(shape.m >= _MANY_ROWS if many else shape.m < _MANY_ROWS)
    require(shape.m == rows if few else shape.m >= _FEW_ROWS)
    across = columns(shape.n, 2, isa)
    if few:
        return Tile(rows, across, split=4 if rows == 1 else 2 if large else 1), True, False
    if many:
        found = _estimated(_as_of(shape, isa, False), isa, False, machine(isa), 1)
        best = min((cycles, mr) for cycles, mr, wide in found if wide == 2)[1]
    else:
        most = min(rows, 12 if large else 4)
        best = min(range(_FEW_ROWS, most + 1), key=lambda each: -(-rows // each) * (each + _MAKING))
        require(shape.m >= best)
    return Tile(best, across), False, many


def made_work(m: int, tile: Tile, panels: int, threads: int) -> Work:
    """The cut of rows where each work tile makes its panel first: few cuts, but work for all threads."""
    blocks, groups = -(-m // tile.mr), 1 if panels % threads == 0 or panels >= 4 * threads else threads
    mc = tile.mr * -(-blocks // minimum(blocks, maximum(groups, m // _ROWS_OF_MADE)))
    return Work(mc, -(-m // mc) * panels)


def fetching(tile: Tile, isa: Isa) -> Tile:
    """The tile for bytes whose panels come from far: at each step along k it fetches a line of the next panel."""
    alike = tile.mr > 1 and isa.f32 * isa.group == LINE
    return evolve(tile, ahead=1) if alike else tile


def own_room(nbytes: int, threads: int, isa: Isa) -> int:
    """How far apart so many bytes of scratch memory of each of some threads are: whole second caches, so that for all
    layers each thread has the same memory, which no other has in its cache.
    """
    step = machine(isa).second_cache if threads > 1 else 1
    return -(-nbytes // step) * step


def row_work(
    shape: Shape, tile: Tile, panels: int, row_bytes: int, isa: Isa, threads: int = 1, batches: int = 1
) -> Work:
    """The cut of a product's rows of `row_bytes` each into work tiles whose rows stay in a cache.

    Where threads share such products, one for each of `batches`, rows are cut further if all are done sooner so.
    Threads that cut rows each read all columns, those that cut columns all rows, which another thread has just written;
    and they write what the next layer reads row by row.
    """
    cpu, blocks = machine(isa), -(-shape.m // tile.mr)
    room = cpu.second_cache // _OF_SECOND_CACHE
    most = max(1, room // max(1, row_bytes) // tile.mr)
    fewest = -(-blocks // most)
    right, rest = shape.n * row_bytes, shape.m * (row_bytes + shape.n * (1 if shape.integer else 4))
    by_columns = cpu.foreign * hint(rest) < hint(right * threads)
    if threads > 1 and not by_columns and not shape.integer:
        enough = -(-_CUTS * threads // (panels * batches))
        fewest = maximum(
            fewest, minimum(minimum(enough, blocks // _SHORT), shape.m * shape.n * shape.k // panels // LONG)
        )

    def cycles(each: int) -> float:
        each = hint(each)
        groups = -(-hint(blocks) // each)
        rounds = -(-groups * panels * batches // threads)
        unlike = _UNLIKE if (groups < threads) != by_columns and batches < threads else 0.0
        return rounds * (each + _AGAIN) * (1 + unlike)

    cuts = (fewest, *(-(-fewest // threads) * threads * n for n in (1, 2, 3, 4))) if threads > 1 else (fewest,)
    mc = tile.mr * min((-(-blocks // count) for count in cuts), key=cycles)
    return Work(mc, -(-shape.m // mc) * panels)
