"""Tiles for convolutions whose tile rows are neighbours in a row of outputs."""

from __future__ import annotations

from attrs import frozen

from onert.ir.symbolic.trace import hint
from onert.ir.value import Value
from onert_llvm.kernels.contraction.float_microkernel import MOST_UNROLLED
from onert_llvm.kernels.contraction.register_tile import Tile, columns
from onert_llvm.target.isa import Isa
from onert_llvm.target.machines import machine

from .cost_model import guard
from .tile_cycles import block_cycles, lanes_to_choose, register_tiles, worth_code

_MOST_IN_LINE = 8
"""The most rows of a tile along a row of outputs if the terms of a window row are unrolled: more are slower."""

_FINDING = 30.0
"""Cycles to locate the windows of a tile along a row of outputs."""


@frozen
class LineTile(Value):
    """A tile for a convolution along a row of outputs; `together` outputs are one row of the product."""

    tile: Tile
    isa: Isa
    together: int = 1


def line_tile(
    window: tuple[int, int], stride: int, channels: int, out_w: int, n: int, isa: Isa, alone: bool = False
) -> LineTile:
    """The tile for a convolution over `channels` channels whose tiles are neighbours in a row of `out_w` outputs.

    `alone`: each output is a row of the product.
    """

    across = hint(out_w)

    def cycles(candidate: tuple[Isa, int, int, int]) -> float:
        target, mr, wide, together = candidate
        width, cpu = n * together, machine(target)
        cut = columns(width, wide, target)
        segment = (window[1] + (together - 1) * stride) * channels
        k = window[0] * segment
        full = width // (wide * target.f32) if cut.vectors else 0
        blocks = -(-across // (mr * together))
        found = blocks * sum(
            count * (_FINDING + block_cycles(mr, v, k, cpu)) for count, v in ((full, cut.vectors), (1, cut.tail)) if v
        )
        return worth_code(target, found)

    short = window[1] * channels <= MOST_UNROLLED
    room = _MOST_IN_LINE if short else across
    candidates = [
        (target, mr, v, t)
        for target in lanes_to_choose(isa)
        for mr, v in register_tiles(target, False)
        for t in range(1, 1 + (1 if alone else max(1, target.f32 // n)))
        if mr * t <= across and mr <= room
    ]
    target, mr, wide, chosen = min(candidates, key=cycles)
    guard(mr * chosen <= out_w)
    return LineTile(Tile(mr, columns(n * chosen, wide, target)), target, chosen)
