"""Decides when convolutions put neighbouring outputs in the lanes, and how many registers of them at a time."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.symbolic.trace import decided, hint
from onert.ir.value import Value
from onert_llvm.target.isa import Isa

from .cost_model import guard

_MOST = 8
"""The most filters: with more, the columns of a product fill registers well enough."""
TURNED, _WOVEN = 0.35, 0.15
"""Cycles to transpose an element of the picture to channel-major order, and to interleave a result."""
_ENDING = 15.0
"""Cycles of an epilogue per register of sums unless it is short; a product has a register for each pixel."""
_GAIN = 0.8
"""The maximum fraction of a product's time."""
_ACCUMULATORS = 16
"""Sums of all filters at a time; the other registers hold what is read."""
_LATENCY = 8
"""The fewest sums at a time, so that additions do not wait for one another."""


def plane_registers(n: int, taps: int, channels: int, width: int, isa: Isa, little: bool = True) -> int:
    """How many registers of neighbours in rows of `width` outputs to sum at a time; 0 if a product is faster.

    `little` says whether the epilogue is short.

    The width may be symbolic: whether this method is used is then the same for all lengths. The number of registers
    summed at a time changes no bit and is the best for the current length.
    """
    if n > _MOST or isa.f32 < 4 or not decided(_Suits(n, taps, channels, isa, little), width):
        return 0
    registers, _ = _best(n, taps * channels, np.array([hint(width)]), isa)
    found = int(registers[0])
    guard(found * isa.f32 <= width)
    return found


def plane_cycles(n: int, terms: int, width: int, isa: Isa) -> float:
    """Cycles for each of `width` neighbours of `n` sums of this many terms; infinite if this method cannot be used."""
    if n > _MOST or isa.f32 < 4:
        return float("inf")
    _, cycles = _best(n, terms, np.array([width]), isa)
    return float(cycles[0]) / width


@frozen
class _Suits(Value):
    """Whether this method is used for rows of a given width, as 0 or 1."""

    n: int
    taps: int
    channels: int
    isa: Isa
    little: bool

    def __call__(self, width: int) -> int:
        return int(self._of(np.array([width]))[0])

    def results(self, count: int) -> Array:
        """The results for each width below `count`."""
        return self._of(np.arange(count))

    def _of(self, widths: Array) -> Array:
        depth, ending = self.taps * self.channels, 0.0 if self.little else _ENDING
        _, cycles = _best(self.n, depth, widths, self.isa)
        own = cycles / np.maximum(widths, 1) + TURNED * self.channels + (_WOVEN + ending / self.isa.f32) * self.n
        found: Array = (own < _GAIN * (depth / 2 + ending)).astype(np.int64)
        return found


def _best(n: int, depth: int, widths: Array, isa: Isa) -> tuple[Array, Array]:
    """For each width, the registers to sum at a time and the cycles of a row; 0 and infinity if none fit."""
    room = min(_ACCUMULATORS, isa.registers // 2) // n
    registers, least = np.zeros(len(widths), np.int64), np.full(len(widths), np.inf)
    for count in (8, 6, 5, 4, 3, 2, 1):
        if count <= room:
            outputs = count * isa.f32
            cycles = np.where(outputs <= widths, -(-widths // outputs) * _cycles(count, n, depth), np.inf)
            registers, least = np.where(cycles < least, count, registers), np.minimum(cycles, least)
    return registers, least


def _cycles(registers: int, n: int, depth: int) -> float:
    """Cycles for `registers` registers of outputs of all filters: two products or loads per cycle."""
    sums = registers * n
    return depth * max(sums / 2, (registers + n) / 2, _LATENCY / 2 if sums < _LATENCY else 0, 1.0) + 4 * sums
