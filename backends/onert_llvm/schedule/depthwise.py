"""Schedules of depthwise convolutions: strips of outputs, and chunks of channels."""

from __future__ import annotations

from math import gcd, log2

from onert.ir.symbolic.trace import hint, is_symbolic
from onert_llvm.kernels.arithmetic.interleave_x86 import PAIR, REGISTERS
from onert_llvm.kernels.contraction.direct.depthwise_strip import Strip
from onert_llvm.kernels.contraction.direct.grouped_f32 import Groups
from onert_llvm.target.isa import Dot, Isa
from onert_llvm.target.machines import machine

from .cost_model import MANY_REGISTERS, guard
from .tile_cycles import lanes_to_choose, lines_held

_OF_FIRST_CACHE, _MANY_CHANNELS = 7 / 16, 6
"""The part of the first-level cache for bytes of a picture that a depthwise convolution reads repeatedly, and the
registers of channels from which it is always computed in chunks.
"""

MOST_ACROSS, _FEW, _MOST_COLUMNS = 11, 7, 20
"""The most outputs of a float strip. Registers suffice for `_FEW`, and for more outputs that span fewer columns."""


_MOST_WIDTH = 7
"""The widest window, in columns, for which small groups are computed side by side."""


def strip(
    window: tuple[int, int], stride: int, dilation: int, out_w: int, channels: int, isa: Isa, most: int = 7
) -> Strip:
    """The strip of a depthwise convolution whose output is `out_w` wide: at most `most` outputs, or six with few
    registers.
    """
    width, reach = hint(out_w), (window[1] - 1) * dilation
    room = most if isa.registers >= MANY_REGISTERS else 6
    few = [a for a in range(1, min(room, width) + 1) if a <= _FEW or (a - 1) * stride + reach < _MOST_COLUMNS]
    across = min(few, key=lambda a: (-(-width // a) * (a + (1.5 if a <= _FEW else 2.0)), -a))
    guard(across <= out_w)
    return Strip(window, stride, dilation, across, channels < isa.f32)


def pool_strip(window: tuple[int, int], stride: int, out_w: int, pixel: int, channels: int, isa: Isa) -> Strip:
    """The strip of a pool over pixels of `pixel` bytes: only as many outputs as the first-level cache can hold pixels
    for, if that is at least two.
    """
    held = lines_held(hint(pixel), machine(isa))
    cuts = [strip(window, stride, 1, out_w, channels, isa, most) for most in range(_FEW, 1, -1)]
    return next((cut for cut in cuts if window[0] * len(cut.columns) <= held), cuts[0])


def pixels_together(channels: int, stride: int, out_w: int, isa: Isa) -> int:
    """How many neighbouring outputs to compute as one, so that channels that fill half a register fill whole ones.

    With more channels this does not pay, because pixels are read again for each column of the window.
    """
    together = isa.f32 // gcd(channels, isa.f32)
    fills = 2 * channels <= isa.f32 and isa.free_masks and stride == 1
    return together if fills and not is_symbolic(out_w) and out_w % together == 0 else 1


def grouped(window: tuple[int, int], stride: int, dilation: int, groups: Groups, channels: int, isa: Isa) -> Isa | None:
    """The target whose registers compute a convolution's small groups side by side; None if multiplying each group
    alone is faster: if it has as many outputs as lanes (one more if strides rule out minimal filtering), or wide
    windows.
    """
    if groups.outputs >= isa.f32 + (stride > 1) or window[1] > _MOST_WIDTH:
        return None
    found = [each for each in lanes_to_choose(isa) if groups.fits(each.f32)]
    found = [each for each in found if each.free_masks or (groups.whole(each.f32) and channels >= each.f32)]
    return min(found, key=lambda each: each.f32 / groups.results(each.f32), default=None)


def chunk(window: tuple[int, int], size: tuple[int, int], channels: int, isa: Isa) -> int:
    """How many channels of a depthwise convolution to compute at a time: the rows of a window stay in the first cache.

    All channels if they are few and end inside a register, because neighbouring pixels then share lines, and all if no
    private cache holds the picture (`size` is its height and width), which is then read in memory order.
    """
    cpu, (height, width) = machine(isa), (hint(length) for length in size)
    if channels % isa.f32 and channels < _MANY_CHANNELS * isa.f32:
        return channels
    if 4 * height * width * channels > cpu.second_cache:
        return channels
    rows = window[0] * width * isa.vector_bytes
    registers = max(1.0, _OF_FIRST_CACHE * cpu.first_cache / rows)
    return min(channels, isa.f32 << round(log2(registers)))


def registers_together(isa: Isa, compact: bool = False) -> int:
    """How many registers of channels of bytes a depthwise convolution computes together; 0 for one at a time.

    If bytes are multiplied in fours, whole registers of them are interleaved (`interleave_x86`); if in pairs, registers
    of 16-bit numbers, unless code is to be `compact`.
    """
    return pairs_together(isa, compact) or (REGISTERS if isa.dot in (Dot.VNNI, Dot.AVX_VNNI) else 0)


def pairs_together(isa: Isa, compact: bool = False) -> int:
    """The same for sums that become floats."""
    return PAIR if isa.widens_bytes and not compact else 0
