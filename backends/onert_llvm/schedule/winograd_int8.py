"""Schedules of Winograd convolutions of bytes, their weights, and whether they are faster than windows term by term."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.symbolic.trace import hint
from onert.ir.value import Value
from onert_llvm.kernels.contraction.register_tile import Columns, Tile
from onert_llvm.kernels.contraction.winograd.winograd_int8 import MOST_BITS, PLACES, POINTS, WEIGHTS
from onert_llvm.target.isa import Isa
from onert_llvm.target.machines import machine

from .cost_model import WORTH_NO_CODE, Shape, product_cycles
from .float_packing import panels_f32
from .tile_cycles import MANY_PAIRED_SUMS, block_cycles, register_tiles
from .winograd import MOST_PIECES, Blocks

_OF_CACHE = (1 / 16, 3 / 4)
"""The least and the most of the second-level cache for what is transformed for a block of tiles. Weights are read for
each block, so that of one thread has as much as they have. Threads that take blocks from one another wait for less
memory where these are small: they have the most only where weights are far.
"""

_NEAR = 1 / 2
"""The part of the second-level cache that weights stay in; cycles are lost for more, which are read for each block."""

_LEAST_SUMS = 8
"""Accumulators of a tile at least, so that additions do not wait for one another."""

_LEAST_FAR = 8
"""Rows of a tile at least where weights are far: reading them takes longer than the products of fewer."""

_FEW = 16
"""Tiles of a block whose products take no longer than far weights to come, if these are not asked for early."""

_OF_FIRST = 3 / 4
"""The part of the first cache in which weights of two places, one of which is fetched, stay beside what they are
multiplied by.
"""

_WAITS = 2.0
"""How long is waited for far weights, in the time to read them, where they do not stay so and few tiles are multiplied
by them.
"""

_LATE = 1 / 4
"""What part of a work tile threads wait for another at the end."""

_WIDEST = 5
"""Registers of a panel at most."""

_WORTH = 0.9
"""What part of the time of the windows' terms it may take to be chosen: estimates are no closer."""

_TERMS = 9


@frozen
class Layer(Value):
    """A convolution of so many `channels` to `n` on a target."""

    channels: int
    n: int
    isa: Isa


def runs(layer: Layer, total: int) -> bool:
    """Whether there is such code for a target, and a layer of so many tiles of outputs fills its registers."""
    isa, channels = layer.isa, layer.channels
    paired = isa.free_masks and bool(isa.dot.value.pairs)
    full = channels >= isa.f32 and channels % 2 == 0 and layer.n >= isa.f32
    return paired and full and next(_cuts(layer, total), None) is not None


def fits(filters: Array) -> bool:
    """Whether all sums of `filters[taps, channels, n]`, centred, with unsigned bytes have so few bits that they are
    right.
    """
    wide = filters.reshape(-1, filters.shape[-1])
    most = np.maximum(wide, 0).sum(0, dtype=np.int64), -np.minimum(wide, 0).sum(0, dtype=np.int64)
    return bool(255 * max(int(side.max()) for side in most) < 1 << (MOST_BITS - 1))


def pack_winograd_int8(filters: Array, columns: Columns, isa: Isa) -> Array:
    """Centred `filters[height, width, channels, n]` as panels `[places, channels / 2, width]` of pairs of 16 bits."""
    _, _, channels, n = filters.shape
    packed, parts = panels_f32(PLACES * channels // 2, n, columns, isa)
    for first, part in parts:
        some = np.ascontiguousarray(filters[..., first : first + part.shape[1]], np.int16)
        found = _transformed(_transformed(some).swapaxes(0, 1)).swapaxes(0, 1)
        pairs = found.reshape(PLACES, channels // 2, 2, -1).swapaxes(2, 3)
        part.view(np.int16).reshape(pairs.shape)[:] = pairs
    return packed


def _transformed(window: Array) -> Array:
    """The transform of weights along the first axis, as `WEIGHTS` has it, in few additions."""
    one, two, three = window
    out = np.empty((POINTS, *one.shape), np.int16)
    even, odd = one + three, two << 1
    np.add(even, two, out=out[1])
    np.negative(out[1], out=out[1])
    np.subtract(two, even, out=out[2])
    np.add(one, three << 2, out=even)
    np.add(even, odd, out=out[3])
    np.subtract(even, odd, out=out[4])
    for place, own in ((0, one), (-1, three)):
        np.multiply(own, np.int16(WEIGHTS[place][place]), out=out[place])
    return out


def panel_bytes(channels: int, columns: Columns, isa: Isa) -> int:
    """The bytes from one panel to the next."""
    return 2 * PLACES * channels * columns.widest * isa.f32


@frozen
class _Cut(Value):
    """A register tile of so many `rows` by `columns`, and the cycles that it takes: a row of tiles for the products of
    a `panel` and what comes back of them, and to transform what it sees (`forward`); and to read all weights again from
    `far`. A block has `most` rows of tiles.
    """

    rows: int
    columns: Columns
    panels: int
    panel: float
    forward: float
    far: float
    most: int

    def cycles(self, total: int) -> float:
        """Of so many tiles of outputs on one thread."""
        steps = -(-total // self.rows)
        return steps * (self.panels * self.panel + self.forward) + -(-steps // self.most) * self.far

    def work(self, each: int, group: int) -> float:
        """The cycles of so many rows of tiles by so many panels."""
        return each * (group * self.panel + self.forward) + self.far * group / self.panels


def is_faster(layer: Layer, total: int, outputs: int) -> bool:
    """Whether so many tiles are estimated to take less time than so many outputs term by term."""
    terms = product_cycles(Shape(outputs, layer.n, _TERMS * layer.channels, True), layer.isa)
    return min(cut.cycles(total) for cut in _cuts(layer, total)) < _WORTH * terms


def _weights(layer: Layer) -> int:
    """The bytes of a layer's transformed weights."""
    return 2 * PLACES * layer.channels * layer.n


def _are_far(layer: Layer) -> bool:
    """Whether a layer's weights come from beyond the second-level cache."""
    return _weights(layer) > _NEAR * machine(layer.isa).second_cache


def is_late(layer: Layer, block: int) -> bool:
    """Whether weights would be late for blocks of so many tiles if they were asked for only one place before."""
    return _are_far(layer) and block <= _FEW


def _tiles(isa: Isa, total: int, shared: bool) -> Sequence[tuple[int, int]]:
    """Rows by registers of columns whose accumulators fit the registers, with one of columns and two more.

    For one thread, or few tiles of outputs, the fewest rows that go through these in so many steps. Threads share many
    tiles, and there blocks of any number of rows were no faster.
    """
    if shared and total > _FEW:
        return register_tiles(isa, False, _WIDEST)
    found = []
    for wide in range(1, _WIDEST + 1):
        steps = {-(-total // rows) for rows in range(1, (isa.registers - 2) // wide)}
        found += [(-(-total // count), wide) for count in sorted(steps)]
    return found


def _cuts(layer: Layer, total: int, shared: bool = False) -> Iterator[_Cut]:
    """The register tiles that a layer of so many tiles of outputs may have, `shared` by threads or not."""
    isa, channels, n = layer.isa, layer.channels, layer.n
    cpu, weights, is_far = machine(isa), _weights(layer), _are_far(layer)
    least, most = (part * cpu.second_cache for part in _OF_CACHE)
    space = (most if is_far else least) if shared else min(max(weights, least), most)
    for mr, wide in _tiles(isa, total, shared):
        if mr * wide < _LEAST_SUMS or mr > total or (is_far and mr < _LEAST_FAR):
            continue
        width = wide * isa.f32
        panels, registers = -(-n // width), -(-n // isa.f32)
        back = mr * cpu.byte_back * registers / panels
        panel = PLACES * block_cycles(mr, wide, channels / 2, cpu, many=MANY_PAIRED_SUMS) + back
        forward = mr * cpu.byte_forward * -(-channels // (2 * isa.f32))
        fit = max(1, int(space) // (PLACES * (2 * channels + 4 * width)) // mr)
        rows, far = min(fit * mr, total), weights / cpu.far_bytes if is_far else 0.0
        if rows <= _FEW and 2 * channels * (2 * width + rows) > _OF_FIRST * cpu.first_cache:
            far *= _WAITS
        yield _Cut(mr, Columns(wide, padded=True), panels, panel, forward, far, fit)


def blocks(layer: Layer, total: int, threads: int, known: Collection[Tile] = ()) -> Blocks:
    """The cut of a layer of so many tiles, which may be symbolic: any gives the same results.

    A tile that is `known`, so that there is code for it, is taken where it is estimated to be slower by little at most.
    """
    seen = hint(total)
    choices = sorted(((cut.cycles(seen), cut) for cut in _cuts(layer, seen, threads > 1)), key=lambda choice: choice[0])
    near = [cut for taken, cut in choices if taken <= choices[0][0] * (1 + WORTH_NO_CODE)]
    cut = next((cut for cut in near if Tile(cut.rows, cut.columns) in known), near[0])
    if not total >= cut.rows:
        raise ValueError("a schedule does not suit the shape that it was made for")
    each, group = _shares(cut, -(-seen // cut.rows), threads)
    return Blocks(Tile(cut.rows, cut.columns), each * cut.rows, group)


def _shares(cut: _Cut, steps: int, threads: int) -> tuple[int, int]:
    """Rows of tiles and panels of a work tile: those that threads are estimated to be done with first.

    Work tiles that are small beside the whole leave less to wait for where a thread is late.
    """
    fewest = -(-steps // cut.most)
    if threads == 1:
        return -(-steps // fewest), cut.panels
    counts = {min(steps, max(fewest, count)) for count in (1, *range(threads, MOST_PIECES * threads + 1))}
    shares = {
        (-(-steps // count), -(-cut.panels // groups))
        for count in counts
        for groups in range(1, min(cut.panels, MOST_PIECES * threads) + 1)
    }

    def done(share: tuple[int, int]) -> float:
        each, group = share
        rounds = -(-(-(-steps // each) * -(-cut.panels // group)) // threads)
        return (rounds + _LATE) * cut.work(each, group)

    return min(sorted(shares), key=done)
