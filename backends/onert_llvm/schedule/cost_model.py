"""Cost model of products: the tile and the work split of a shape on a target.

Pure functions of both; nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache, partial
from itertools import islice, product
from math import inf
from operator import itemgetter

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array
from onert.ir.symbolic.sizes import are_same
from onert.ir.symbolic.trace import decided, hint, is_symbolic, maximum, minimum
from onert.ir.value import Value
from onert_llvm.kernels.contraction.register_tile import LINE, Columns, Tile, columns
from onert_llvm.target.isa import Isa
from onert_llvm.target.machines import Machine, machine, machine_of

from .tile_cycles import (
    SPLITS,
    block_cycles,
    displaced_cycles,
    fits,
    is_mostly_written,
    lanes_to_choose,
    register_tiles,
    worth_code,
)

WORTH_NO_CODE, _WORTH_NO_INTEGER_CODE, _LITTLE_TIME = 0.10, 0.05, 300.0
"""The relative slowdown, and the slowdown in cycles, for which a tile whose code already exists is preferred.

Whole networks lose a hundredth at most with these; integers would lose more, because more of their layers could share.
"""

_WIDEST_PADDED = 5
"""The widest panel, in registers, that is computed whole, so that five do not become six or eight."""

_LEAST_AHEAD = 8192
"""The smallest panel, in bytes, that is worth prefetching."""

MANY_REGISTERS = 32
"""With at least this many registers, two accumulator sets of 4 rows x 3 registers fit."""

_MANY_ROWS = 16
"""Products with at least this many rows add each sum in one accumulator, whatever the rest of the shape."""

_ANY = machine_of("")
"""The processor that determines in how many accumulators a product of fewer rows adds each sum. This affects bits, so
it is the same on every processor.
"""

_WORTH_SAME_ORDER = 1.02
"""The slowdown that a product of few rows may have to add in the same order as others."""

_WIDE, _NARROW = (0, 1, 2), (1, 0, 2)
"""The order in which the `SPLITS` are tried: with several registers of columns most row counts use one accumulator per
sum, with a single register of columns two.
"""

_FEW_ROWS, _MAKING, _ROWS_OF_MADE = 4, 1.5, 192
"""Rows from which decoded weights are scaled, not sums; the cost of decoding in rows; and rows per decoded panel."""

_OF_SECOND_CACHE = 4
"""The divisor of the second-level cache for the bytes of the left operand that a work tile reads repeatedly."""

_AGAIN = 0.25
"""The cost of reading a panel again for each work tile, in row blocks."""

_CUTS, _SHORT, LONG = 12, 16, 1_200_000
"""Work tiles of floats per thread, so that a thread preempted in the middle of one soon finishes it, provided that each
has this many row blocks (then reading panels again is cheap) and this many products.
"""

_UNLIKE = 0.05
"""The relative slowdown of a cut in the wrong direction."""

_REMEMBERED = 256
"""Shapes whose estimates are cached: layers are looked up more than once, and many are equal."""


@frozen
class Work(Value):
    """How rows are cut into work tiles: `mc` rows each, `tiles` in total (over all panels)."""

    mc: int
    tiles: int


@frozen
class Shape(Value):
    """A product of `m` rows, `row_stride` bytes from one another (0: unknown), `n` columns and `k` terms.

    Tiles of 1, 2, ... rows process `term_fractions` of the terms, or all of them if it is empty. `widened`: rows of
    integers are 16-bit pairs, which are broadcast as they are loaded.
    """

    m: int
    n: int
    k: int
    integer: bool = False
    row_stride: int = 0
    term_fractions: tuple[float, ...] = ()
    widened: bool = False


def product_tile(m: int, n: int, k: int, isa: Isa, integer: bool = False) -> Tile:
    """The tile with the fewest estimated cycles for a product of `m` rows, `n` columns and `k` terms."""
    shape = _as_of(Shape(m, n, k, integer), isa, False)
    return _fitting(next(_tiles(shape, n, isa, False)), m)


def packed_tile(shape: Shape, isa: Isa, known: Collection[Tile] = ()) -> Tile:
    """The tile for a product with a packed right-hand side.

    Prefers a tile in `known` (its code already exists) if the estimated slowdown is small. Such a tile adds in the same
    order, so results do not depend on which code exists.
    """
    padded = isa.free_masks
    rows, n, shape = shape.m, shape.n, _as_of(shape, isa, padded)
    part = _WORTH_NO_INTEGER_CODE if shape.integer else WORTH_NO_CODE
    best, *others = _tiles(shape, n, isa, padded, part)
    return _fitting(best if best in known else next((tile for tile in others if tile in known), best), rows)


def product_cycles(shape: Shape, isa: Isa) -> float:
    """The estimated cycles of a packed product with its best tile, one accumulator per sum."""
    return min(_estimated(shape, isa, isa.free_masks, machine(isa), 1))[0]


def lanes_for(shape: Shape, isa: Isa) -> Isa:
    """The target, or its half registers if a product of many rows with packed weights is much faster with these.

    Sizes may be symbolic: results have the same bits either way.
    """
    lanes = lanes_to_choose(isa)
    if len(lanes) == 1 or is_symbolic(shape.n) or hint(shape.m) < _MANY_ROWS:
        return isa
    found = evolve(shape, m=hint(shape.m), k=hint(shape.k), row_stride=hint(shape.row_stride))
    return min(lanes, key=lambda each: worth_code(each, product_cycles(found, each)))


def near_tiles(shape: Shape, isa: Isa, most: int) -> list[Tile]:
    """At most `most` tiles for a packed product, by estimated cycles; all give the same bits."""
    padded = isa.free_masks
    tiles = _tiles(_as_of(shape, isa, padded), shape.n, isa, padded)
    return [_fitting(tile, shape.m) for tile in islice(tiles, most)]


def near_splits(shape: Shape, tile: Tile, panels: int, work: Work) -> list[Work]:
    """Work splits with half and with twice as many rows per work tile; results have the same bits."""
    rows = {max(1, work.mc // tile.mr // 2) * tile.mr, min(2 * work.mc, -(-shape.m // tile.mr) * tile.mr)}
    return [Work(mc, -(-shape.m // mc) * panels) for mc in sorted(rows) if mc != work.mc]


def _fitting(tile: Tile, rows: int) -> Tile:
    """The tile, for products with at least as many rows as it has."""
    guard(tile.mr <= rows)
    return tile


def _as_of(shape: Shape, isa: Isa, padded: bool) -> Shape:
    """A shape with its sizes replaced by their current lengths. If they are symbolic, the schedule is valid for lengths
    whose best tiles add in the same order, because results must not depend on what ran before.
    """
    found = evolve(shape, m=hint(shape.m), n=hint(shape.n), k=hint(shape.k), row_stride=hint(shape.row_stride))
    if shape.integer or not any(map(is_symbolic, (shape.m, shape.n, shape.k))):
        return found  # integer sums are the same in any order
    if found.m >= _MANY_ROWS:
        guard(shape.m >= _MANY_ROWS)
    else:
        _decide(shape, isa, padded)
    return found


def _decide(shape: Shape, isa: Isa, padded: bool) -> None:
    """Make the number of accumulators a condition of the schedule, as a table over the symbolic sizes."""
    opened, places = list[int](), list[tuple[int, bool]]()
    for size in (minimum(shape.m, _MANY_ROWS), shape.n, shape.k):  # for a small table: all larger ones are alike
        if not is_symbolic(size):
            places.append((size, False))
            continue
        at = next((at for at, other in enumerate(opened) if are_same(size, other)), len(opened))
        opened += [size] * (at == len(opened))
        places.append((at, True))
    decided(_SplitAlong(tuple(places), isa, padded), *opened)


def guard(holds: bool) -> None:
    """Make a condition on symbolic sizes part of the schedule. Raises ValueError if the current lengths violate it."""
    if not holds:
        raise ValueError("a schedule does not fit the shape that it was chosen for")


@frozen
class _Split(Value):
    """The number of accumulators per sum of a product of floats, by rows, columns and terms."""

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
    """The same if some of rows, columns and terms are symbolic: `sizes` holds the index of a length if the flag is set,
    or the size."""

    sizes: tuple[tuple[int, bool], ...]
    isa: Isa
    padded: bool

    def __call__(self, *lengths: int) -> int:
        return _Split(self.isa, self.padded)(*(lengths[size] if is_open else size for size, is_open in self.sizes))

    def results(self, *counts: int) -> Array:
        """The results for all lengths below `counts`, of all tiles at once."""
        lengths = np.indices(counts)
        m, n, k = (lengths[size] if is_open else np.full(counts, size) for size, is_open in self.sizes)
        few = m < _MANY_ROWS
        results = np.ones(counts, np.int64)
        results[few] = self._of_few(m[few], n[few], k[few])
        return results

    def _of_few(self, m: Array, n: Array, k: Array) -> Array:
        """The results for fewer than `_MANY_ROWS` rows."""
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
    """For each tile of a packed product of floats: the estimated cycles of a row of tiles, and the rows of the tile."""
    cpu, padded = machine(isa), isa.free_masks
    return tuple(
        (min(_across(shape, isa, cpu, padded, mr, wide, split) for split in SPLITS if fits(mr, wide, split, isa)), mr)
        for mr, wide in register_tiles(isa, False, _WIDEST_PADDED if padded else 4)
    )


def _tiles(shape: Shape, n: int, isa: Isa, padded: bool, part: float = inf) -> Iterator[Tile]:
    """The tiles that fit, by estimated cycles, except those slower than the best by more than `part` and a few cycles.

    `n` are the columns as given, maybe symbolic: the cut of an unpadded tile is valid for some lengths only.
    """
    split = 1 if shape.integer else _Split(isa, padded)(shape.m, shape.n, shape.k)
    choices = sorted(_estimated(shape, isa, padded, machine(isa), split), key=itemgetter(0))
    least = choices[0][0]
    for cycles, mr, wide in choices:
        if cycles <= least + max(least * part, _LITTLE_TIME):
            yield _tile(shape, isa, mr, Columns(wide, padded=True) if padded else columns(n, wide, isa), split)


@lru_cache(_REMEMBERED)
def _estimated(shape: Shape, isa: Isa, padded: bool, cpu: Machine, split: int) -> tuple[tuple[float, int, int], ...]:
    """The estimated cycles, rows and registers of columns of all tiles with `split` accumulators per sum.

    No size is symbolic, so a cached result adds no condition to another program.
    """
    if shape.m < _MANY_ROWS:  # as in `_across`
        shape = evolve(shape, term_fractions=())
    return tuple(
        (-(-shape.m // mr) * _across(shape, isa, cpu, padded, mr, wide, split), mr, wide)
        for mr, wide in register_tiles(isa, shape.integer and not shape.widened, _WIDEST_PADDED if padded else 4)
        if mr <= shape.m and fits(mr, wide, split, isa)
    )


def _across(shape: Shape, isa: Isa, cpu: Machine, padded: bool, mr: int, wide: int, split: int) -> float:
    """The estimated cycles of a row of tiles across all columns."""
    full, rest = divmod(shape.n, wide * isa.f32)
    steps = shape.k / isa.group if shape.integer else shape.k
    last = 0 if not rest else wide if padded else -(-rest // isa.f32)
    again = displaced_cycles(mr, steps, shape.row_stride, cpu) if shape.m >= _MANY_ROWS else 0.0
    own = partial(block_cycles, mr, k=steps, cpu=cpu, integer=shape.integer, widened=shape.widened, split=split)
    cycles = full * (own(wide) + again) + (own(last) + again if last else 0.0)
    if not shape.term_fractions:
        return cycles
    weights = 4 * shape.k * shape.n  # few rows would wait for them
    far = weights / (cpu.far_bytes * cpu.unfetched) if weights > cpu.second_cache else 0.0
    return shape.term_fractions[mr - 1] * max(cycles, far)


def _tile(shape: Shape, isa: Isa, mr: int, cut: Columns, split: int) -> Tile:
    wide = cut.widest
    blocks = -(-shape.m // mr)
    once = blocks == 1 and not shape.integer
    stream = machine(isa).stream if once else 0
    # A padded tile prefetches in any case, so that short products share the code of long ones.
    small = 4 * shape.k * wide * isa.f32 < _LEAST_AHEAD and (wide == 1 or not cut.padded)
    none = shape.integer or small or (once and not stream)
    ahead = 0 if none else -(-wide * split * 4 * isa.f32 // (LINE * blocks))
    return Tile(mr, cut, split, ahead if once else min(4, ahead), stream if ahead else 0)


def run_tile(m: int, n: int, isa: Isa) -> Tile:
    """The tile for a product of bytes whose runs of terms are scaled: integer and float sums are live at once.

    A single row gets more columns, so that its sums do not wait for one another.
    """
    large = isa.registers >= MANY_REGISTERS
    rows = 4 if large else 2
    several = hint(m) >= rows
    guard(m >= rows if several else m < rows)
    return Tile(rows, columns(n, 3 if large else 2, isa)) if several else Tile(1, columns(n, 4 if large else 3, isa))


def code_tile(shape: Shape, isa: Isa) -> tuple[Tile, bool, bool]:
    """The tile for a product of floats with codes, whether there are so few rows that sums of runs are scaled, and
    whether there are so many that a panel of weights is decoded before it is multiplied.

    All have the same columns, so products of any number of rows share their weights.
    """
    rows, large = hint(shape.m), isa.registers >= MANY_REGISTERS
    few, many = rows < _FEW_ROWS, rows >= _MANY_ROWS
    guard(shape.m >= _MANY_ROWS if many else shape.m < _MANY_ROWS)
    guard(shape.m == rows if few else shape.m >= _FEW_ROWS)
    across = columns(shape.n, 2, isa)
    if few:
        return Tile(rows, across, split=4 if rows == 1 else 2 if large else 1), True, False
    if many:
        found = _estimated(_as_of(shape, isa, False), isa, False, machine(isa), 1)
        best = min((cycles, mr) for cycles, mr, wide in found if wide == 2)[1]
    else:
        most = min(rows, 12 if large else 4)
        best = min(range(_FEW_ROWS, most + 1), key=lambda each: -(-rows // each) * (each + _MAKING))
        guard(shape.m >= best)
    return Tile(best, across), False, many


def decoded_work(m: int, tile: Tile, panels: int, threads: int) -> Work:
    """The work split if each work tile first decodes its panel: few cuts, but work for all threads."""
    blocks, groups = -(-m // tile.mr), 1 if panels % threads == 0 or panels >= 4 * threads else threads
    mc = tile.mr * -(-blocks // minimum(blocks, maximum(groups, m // _ROWS_OF_MADE)))
    return Work(mc, -(-m // mc) * panels)


def with_prefetch(tile: Tile, isa: Isa) -> Tile:
    """The tile for bytes whose panels are far away: at each step along k it prefetches a line of the next panel."""
    alike = tile.mr > 1 and isa.f32 * isa.group == LINE
    return evolve(tile, ahead=1) if alike else tile


def row_work(
    shape: Shape, tile: Tile, panels: int, row_bytes: int, isa: Isa, threads: int = 1, batches: int = 1
) -> Work:
    """The work split of a product whose rows, `row_bytes` each, should stay in a cache; in one that is mostly written,
    work tiles are row blocks. If threads share such products, one for each of `batches`, rows are cut further where
    that finishes sooner. Threads that split rows each read all columns; threads that split columns read all rows, which
    other threads have just written, and write results that the next layer reads row by row.
    """
    cpu, blocks = machine(isa), -(-shape.m // tile.mr)
    written = not shape.integer and is_mostly_written(hint(shape.m), hint(shape.n), hint(shape.k), cpu)
    most = 1 if written else maximum(1, cpu.second_cache // _OF_SECOND_CACHE // maximum(1, row_bytes) // tile.mr)
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
