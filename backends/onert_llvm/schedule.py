"""Schedules:

which tile, strip and work split a shape gets on a target. Pure functions of both, nothing is measured here.
"""

from __future__ import annotations

from attrs import evolve, frozen

from .kernels.product import MOST_UNROLLED
from .kernels.strip import Strip
from .kernels.tile import Tile, columns
from .kernels.weave import REGISTERS
from .target import Dot, Isa

_LATENCY = 4.0
"""Cycles from one addition to an accumulator to the next."""

_MOST_IN_LINE = 8
"""Rows of a tile along a row of outputs where the terms of a row of the window are written out: more are slower."""

_FIRST_CACHE, _LEAST_CHUNK = 26 * 1024, 4
"""Bytes of a picture that a depthwise convolution reads again and again, and registers of channels to be worth it."""

_PER_BLOCK = 12.0
"""Cycles to begin and end a tile, beside its inner loop."""

_CACHE = 256 * 1024
"""Bytes of the left operand that a work tile goes over again and again: well inside a second-level cache."""


@frozen
class Work:
    """How rows are cut into work tiles: `mc` rows each, `tiles` in all (of all panels)."""

    mc: int
    tiles: int


def product_tile(m: int, n: int, k: int, isa: Isa, integer: bool = False) -> Tile:
    """The tile for a product of `m` rows, `n` columns and `k` terms: the fewest estimated cycles."""

    def cycles(candidate: tuple[int, int]) -> float:
        mr, wide = candidate
        cut = columns(n, wide, isa)
        full = n // (wide * isa.f32) if cut.vectors else 0
        blocks = -(-m // mr)
        return blocks * sum(count * _block(mr, v, k) for count, v in ((full, cut.vectors), (1, cut.tail)) if v)

    mr, wide = min((candidate for candidate in _tiles(isa, integer) if candidate[0] <= m), key=cycles)
    few = 1 if mr * wide >= 8 or integer else 2 if mr * wide >= 4 else 4
    cut = columns(n, wide, isa)
    blocks = -(-m // mr)
    stream = blocks == 1 and not integer
    size = 4 * k * cut.widest * isa.f32
    ahead = 0 if integer or size < 8192 else cut.widest if stream else min(4, -(-cut.widest // blocks))
    return Tile(mr, cut, few, ahead * few, stream and ahead > 0)


@frozen
class LineTile:
    """A tile for a convolution along a row of outputs, `together` of which are one row of the product."""

    tile: Tile
    together: int = 1


def line_tile(
    window: tuple[int, int], stride: int, channels: int, out_w: int, n: int, isa: Isa, alone: bool = False
) -> LineTile:
    """The tile for a convolution of so many `channels` whose tiles are neighbours in a row of `out_w` outputs.

    `alone`: each output is a row of the product.
    """

    def cycles(candidate: tuple[int, int, int]) -> float:
        mr, wide, together = candidate
        width = n * together
        cut = columns(width, wide, isa)
        segment = (window[1] + (together - 1) * stride) * channels
        k = window[0] * segment
        full = width // (wide * isa.f32) if cut.vectors else 0
        blocks = -(-out_w // (mr * together))
        return blocks * sum(count * _block(mr, v, k) for count, v in ((full, cut.vectors), (1, cut.tail)) if v)

    most = 1 if alone else max(1, isa.f32 // n)
    together = range(1, most + 1)
    short = window[1] * channels <= MOST_UNROLLED
    room = _MOST_IN_LINE if short else out_w
    candidates = [(mr, v, t) for mr, v in _tiles(isa, False) for t in together if mr * t <= out_w and mr <= room]
    mr, wide, chosen = min(candidates, key=cycles)
    return LineTile(Tile(mr, columns(n * chosen, wide, isa)), chosen)


def _block(mr: int, vectors: int, k: int) -> float:
    """Cycles of one tile: two products a cycle, but never faster than additions to one accumulator follow each other.

    The rest was fitted to measurements: what the loop itself costs, and what rows cost in addresses.
    """
    return _PER_BLOCK + k * (max(mr * vectors / 2, (mr + vectors) / 2, _LATENCY / 2) + 0.3 + 0.03 * mr)


def _tiles(isa: Isa, integer: bool) -> list[tuple[int, int]]:
    """Rows by registers of columns whose accumulators, with a row of columns and two more, fit the registers."""
    spare = 3 if integer and isa.dot is Dot.MADD else 2
    return [
        (mr, wide)
        for wide in (4, 3, 2, 1)
        for mr in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
        if mr * wide + wide + spare <= isa.registers
    ]


def row_work(m: int, tile: Tile, panels: int, row_bytes: int, threads: int = 1) -> Work:
    """The cut of `m` rows of `row_bytes` each: work that stays in a cache, and enough pieces for every thread."""
    rows = max(1, _CACHE // max(1, row_bytes))
    pieces = -(-4 * threads // panels) if threads > 1 else 1
    mc = max(tile.mr, min(rows, -(-m // pieces)) // tile.mr * tile.mr)
    return Work(mc, -(-m // mc) * panels)


def strip(window: tuple[int, int], stride: int, dilation: int, out_w: int, channels: int, isa: Isa) -> Strip:
    """The strip for a depthwise convolution whose output is `out_w` wide."""
    room = 7 if isa.registers >= 32 else 4
    candidates = range(1, min(room, out_w) + 1)
    across = min(candidates, key=lambda a: (-(-out_w // a) * (a + 1.5), -a))
    return Strip(window, stride, dilation, across, channels % isa.f32 != 0)


def chunk(window: tuple[int, int], in_w: int, channels: int, isa: Isa) -> int:
    """How many channels of a depthwise convolution to compute at a time: the rows of a window stay in the first cache.

    All of them where that leaves too few registers at a time to be worth beginning strips for.
    """
    row = window[0] * in_w * isa.vector_bytes
    registers = max(1, _FIRST_CACHE // row)
    most = 1 << registers.bit_length() - 1
    return most * isa.f32 if most >= _LEAST_CHUNK and channels > most * isa.f32 else channels


def byte_strip(window: tuple[int, int], stride: int, dilation: int, out_w: int, channels: int, isa: Isa) -> Strip:
    """The same for bytes: four registers of channels together where bytes are multiplied by fours and there are any."""
    plain = strip(window, stride, dilation, out_w, channels, isa)
    step = isa.f32 * REGISTERS
    if isa.dot not in (Dot.VNNI, Dot.AVX_VNNI) or channels < step:
        return plain
    room = (7 if stride == 1 else 3) if isa.registers >= 32 else 2
    across = min(range(1, min(room, out_w) + 1), key=lambda a: (-(-out_w // a) * (a + 1.5), -a))
    return evolve(plain, across=across, wide=REGISTERS)
