"""Schedules of Winograd convolutions of bytes, their weights, and whether they are faster than windows term by term."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.symbolic.trace import hint
from onert.ir.value import Value
from onert_llvm.kernels.contraction.register_tile import Columns, Tile
from onert_llvm.kernels.contraction.winograd.winograd_int8 import MOST_BITS, PLACES, POINTS, WEIGHTS
from onert_llvm.target.isa import Isa
from onert_llvm.target.machines import Machine, machine

from .cost_model import WORTH_NO_CODE, Shape, block_cycles, product_cycles, register_tiles
from .weight_packing import panels_f32
from .winograd import Blocks

_OF_CACHE = 7 / 16
"""The part of the second-level cache for what is transformed for a block of tiles."""

_NEAR = 1 / 2
"""The part of the second-level cache that weights stay in; cycles are lost for more, which are read for each block."""

_LEAST_SUMS = 8
"""Accumulators of a tile at least, so that additions do not wait for one another."""

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
    return paired and full and next(_candidates(layer, total), None) is not None


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


def cycles(layer: Layer, total: int) -> float:
    """The fewest estimated cycles for so many tiles of outputs."""
    return min(found for found, _, _ in _candidates(layer, total))


def is_faster(layer: Layer, total: int, outputs: int) -> bool:
    """Whether so many tiles are estimated to take less time than so many outputs term by term."""
    terms = product_cycles(Shape(outputs, layer.n, _TERMS * layer.channels, True), layer.isa)
    return cycles(layer, total) < _WORTH * terms


def _candidates(layer: Layer, total: int) -> Iterator[tuple[float, Tile, int]]:
    """Register tiles: the estimated cycles of the layer, and tiles of outputs in a block."""
    isa, channels, n = layer.isa, layer.channels, layer.n
    cpu, weights = machine(isa), 2 * PLACES * channels * n
    each = cpu.byte_forward * -(-channels // (2 * isa.f32)) + cpu.byte_back * -(-n // isa.f32)
    for mr, wide in register_tiles(isa, False, _WIDEST):
        if mr * wide < _LEAST_SUMS or mr > total:
            continue
        width, steps = wide * isa.f32, -(-total // mr)
        across = -(-n // width) * block_cycles(mr, wide, channels / 2, cpu)
        bytes_of_tile = PLACES * (2 * channels + 4 * width)
        most = max(1, int(_OF_CACHE * cpu.second_cache) // bytes_of_tile // mr)
        count = -(-steps // most)
        taken = PLACES * steps * across + total * each + count * _reading(weights, cpu)
        yield taken, Tile(mr, Columns(wide, padded=True)), -(-steps // count) * mr


def _reading(weights: int, cpu: Machine) -> float:
    """Cycles lost for reading so many bytes of weights again from beyond a core's own cache."""
    return weights / cpu.far_bytes if weights > _NEAR * cpu.second_cache else 0.0


def blocks(layer: Layer, total: int, threads: int, known: Collection[Tile] = ()) -> Blocks:
    """The cut of a layer of so many tiles, which may be symbolic: any gives the same results.

    A tile that is `known`, so that there is code for it, is taken where it is estimated to be slower by little at most.
    """
    seen = hint(total)
    choices = sorted(_candidates(layer, seen), key=lambda choice: choice[0])
    near = [(tile, block) for taken, tile, block in choices if taken <= choices[0][0] * (1 + WORTH_NO_CODE)]
    tile, block = next((choice for choice in near if choice[0] in known), near[0])
    if not total >= tile.mr:
        raise ValueError("a schedule does not suit the shape that it was made for")
    steps, panels = -(-seen // tile.mr), -(-layer.n // (tile.columns.widest * layer.isa.f32))
    count = -(-seen // block)
    if count % threads:
        # Each thread takes as many blocks where there are tiles enough for that, else as many columns.
        count = min(-(-count // threads) * threads, steps)
        block = -(-steps // count) * tile.mr
    groups = 1 if -(-seen // block) % threads == 0 else min(panels, threads)
    return Blocks(tile, block, -(-panels // groups))
