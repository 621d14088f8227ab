"""Schedules of Winograd convolutions of bytes, their weights, and whether they beat the direct convolution."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.symbolic.trace import hint
from onert.ir.value import Value
from onert_llvm.kernels.contraction.register_tile import Columns, Tile, columns
from onert_llvm.kernels.contraction.winograd.winograd_int8 import MOST_BITS, PLACES, POINTS, WEIGHTS
from onert_llvm.target.isa import Isa
from onert_llvm.target.machines import machine

from .cost_model import MANY_REGISTERS, WORTH_NO_CODE, Shape, product_cycles
from .float_packing import panels_f32
from .tile_cycles import MANY_PAIRED_SUMS, block_cycles, register_tiles
from .winograd import MOST_PIECES, Blocks

_OF_CACHE = (1 / 16, 3 / 4)
"""The least and the most of the second-level cache for a block's transformed tiles. Weights are read once per block, so
a single thread's block gets as much as the weights have. Threads that take blocks from one another wait less for memory
if these are small: they get the most only if weights are far.
"""

_NEAR = 1 / 2
"""The part of the second-level cache that weights stay in; larger weights cost cycles, being read for each block."""

_LEAST_SUMS = 8
"""The fewest accumulators of a tile, so that additions do not wait for one another."""

_LEAST_FAR = 8
"""The fewest rows of a tile if weights are far: with fewer, reading them takes longer than the products."""

_FEW = 16
"""The most tiles of a block whose products take less time than loading far weights, unless prefetched early."""

_OF_FIRST = 3 / 4
"""The part of the first-level cache in which the weights of two places, one being prefetched, stay beside their other
operand.
"""

_WAITS = 2.0
"""The wait for far weights, relative to the time to read them, if they do not stay there and few tiles are multiplied
by them.
"""

_LATE = 1 / 4
"""The part of a work tile that threads wait for another at the end."""

_FEW_REGISTERS = 1.7, 3.2
"""The factors for the cycles of the forward and the backward transform with sixteen registers, which spill."""

_WIDEST = 5
"""The widest panel, in registers."""

_WORTH = 0.9
"""The maximum fraction of the direct convolution's time at which Winograd is chosen: estimates are no more accurate."""

_TERMS = 9


@frozen
class Layer(Value):
    """A convolution from `channels` to `n` channels on a target."""

    channels: int
    n: int
    isa: Isa


def runs(layer: Layer, total: int) -> bool:
    """Whether the target has such code, and a layer of `total` output tiles fills its registers."""
    isa, channels = layer.isa, layer.channels
    paired = (isa.free_masks and bool(isa.dot.value.pairs)) or isa.widens_bytes
    full = channels >= isa.f32 and channels % 2 == 0 and layer.n >= isa.f32
    return paired and full and next(_cuts(layer, total), None) is not None


def fits(filters: Array) -> bool:
    """Whether all sums of `filters[taps, channels, n]`, centred, with unsigned bytes have few enough bits."""
    wide = filters.reshape(-1, filters.shape[-1])
    most = np.maximum(wide, 0).sum(0, dtype=np.int64), -np.minimum(wide, 0).sum(0, dtype=np.int64)
    return bool(255 * max(int(side.max()) for side in most) < 1 << (MOST_BITS - 1))


def pack_winograd_int8(filters: Array, columns: Columns, isa: Isa) -> Array:
    """Centred `filters[height, width, channels, n]` as panels `[places, channels / 2, width]` of 16-bit pairs."""
    _, _, channels, n = filters.shape
    packed, parts = panels_f32(PLACES * channels // 2, n, columns, isa)
    for first, part in parts:
        some = np.ascontiguousarray(filters[..., first : first + part.shape[1]], np.int16)
        found = _transformed(_transformed(some).swapaxes(0, 1)).swapaxes(0, 1)
        pairs = found.reshape(PLACES, channels // 2, 2, -1).swapaxes(2, 3)
        part.view(np.int16).reshape(pairs.shape)[:] = pairs
    return packed


def _transformed(window: Array) -> Array:
    """The transform of weights along the first axis, as in `WEIGHTS`, with few additions."""
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
    """A register tile of `rows` by `columns` and its cycles: for a row of tiles, the products and back-transform of one
    `panel`, and the input transform (`forward`); and to reload all weights from `far`. A block has at most `most` rows
    of tiles.
    """

    rows: int
    columns: Columns
    panels: int
    panel: float
    forward: float
    far: float
    most: int

    def cycles(self, total: int) -> float:
        """Cycles for `total` output tiles on one thread."""
        steps = -(-total // self.rows)
        return steps * (self.panels * self.panel + self.forward) + -(-steps // self.most) * self.far

    def work(self, each: int, group: int) -> float:
        """The cycles of `each` rows of tiles by `group` panels."""
        return each * (group * self.panel + self.forward) + self.far * group / self.panels


def is_faster(layer: Layer, total: int, outputs: int) -> bool:
    """Whether `total` tiles are estimated to be faster than the direct convolution of `outputs` outputs."""
    shape = Shape(outputs, layer.n, _TERMS * layer.channels, integer=True, widened=layer.isa.widens_bytes)
    terms = product_cycles(shape, layer.isa)
    return min(cut.cycles(total) for cut in _cuts(layer, total)) < _WORTH * terms


def _weights(layer: Layer) -> int:
    """The bytes of a layer's transformed weights."""
    return 2 * PLACES * layer.channels * layer.n


def _are_far(layer: Layer) -> bool:
    """Whether a layer's weights come from beyond the second-level cache."""
    return _weights(layer) > _NEAR * machine(layer.isa).second_cache


def is_late(layer: Layer, block: int) -> bool:
    """Whether weights would arrive late for blocks of `block` tiles if prefetched only one place ahead."""
    return _are_far(layer) and block <= _FEW


def _tiles(isa: Isa, total: int, shared: bool) -> Sequence[tuple[int, int]]:
    """Tiles (rows, registers of columns) whose accumulators, one register of columns and two spare registers fit.

    For one thread, or few output tiles, only the fewest rows for each number of steps. Threads share many tiles, and
    for them blocks of any number of rows were no faster.
    """
    if shared and total > _FEW:
        return register_tiles(isa, False, _WIDEST)
    found = []
    for wide in range(1, _WIDEST + 1):
        steps = {-(-total // rows) for rows in range(1, (isa.registers - 2) // wide)}
        found += [(-(-total // count), wide) for count in sorted(steps)]
    return found


def _cuts(layer: Layer, total: int, shared: bool = False) -> Iterator[_Cut]:
    """The possible register tiles of a layer of `total` output tiles, `shared` by threads or not."""
    isa, channels, n = layer.isa, layer.channels, layer.n
    cpu, weights, is_far = machine(isa), _weights(layer), _are_far(layer)
    least, most = (part * cpu.second_cache for part in _OF_CACHE)
    kinds, spilled = (
        (isa.widens_bytes, isa.widens_bytes),
        (1.0, 1.0) if isa.registers >= MANY_REGISTERS else _FEW_REGISTERS,
    )
    space = (most if is_far else least) if shared else min(max(weights, least), most)
    for mr, wide in _tiles(isa, total, shared):
        if mr * wide < _LEAST_SUMS or mr > total or (is_far and mr < _LEAST_FAR):
            continue
        width = wide * isa.f32
        panels, registers = -(-n // width), -(-n // isa.f32)
        back = mr * cpu.byte_back * spilled[1] * registers / panels
        panel = PLACES * block_cycles(mr, wide, channels / 2, cpu, *kinds, many=MANY_PAIRED_SUMS) + back
        forward = mr * cpu.byte_forward * spilled[0] * -(-channels // (2 * isa.f32))
        fit = max(1, int(space) // (PLACES * (2 * channels + 4 * width)) // mr)
        rows, far = min(fit * mr, total), weights / cpu.far_bytes if is_far else 0.0
        if rows <= _FEW and 2 * channels * (2 * width + rows) > _OF_FIRST * cpu.first_cache:
            far *= _WAITS
        cut = Columns(wide, padded=True) if isa.free_masks else columns(n, wide, isa)
        yield _Cut(mr, cut, panels, panel, forward, far, fit)


def blocks(layer: Layer, total: int, threads: int, known: Collection[Tile] = ()) -> Blocks:
    """The cut of a layer of `total` tiles, which may be symbolic: any cut gives the same results.

    Prefers a tile in `known` (its code already exists) if the estimated slowdown is small.
    """
    seen = hint(total)
    choices = sorted(((cut.cycles(seen), cut) for cut in _cuts(layer, seen, threads > 1)), key=lambda choice: choice[0])
    near = [cut for taken, cut in choices if taken <= choices[0][0] * (1 + WORTH_NO_CODE)]
    cut = next((cut for cut in near if Tile(cut.rows, cut.columns) in known), near[0])
    if not total >= cut.rows:
        raise ValueError("a schedule does not fit the shape that it was chosen for")
    each, group = _shares(cut, -(-seen // cut.rows), threads)
    return Blocks(Tile(cut.rows, cut.columns), each * cut.rows, group)


def _shares(cut: _Cut, steps: int, threads: int) -> tuple[int, int]:
    """Rows of tiles and panels per work tile, for the earliest estimated finish of all threads.

    Work tiles that are small relative to the whole leave less to wait for if a thread is late.
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
