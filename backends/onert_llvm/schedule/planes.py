"""When convolutions are computed with neighbouring outputs in the lanes, and how many registers of them at a time."""

from __future__ import annotations

from onert_llvm.target.isa import Isa

_MOST = 8
"""Filters at most: with more the columns of a product fill registers well enough."""
_TURNED, _WOVEN = 0.35, 0.15
"""Cycles for each element of the picture to be brought channel by channel, and for each result to be woven."""
_GAIN = 0.8
"""What part of a product's time it may take at most."""
_ACCUMULATORS = 16
"""Sums of all filters at a time, beside which there are registers for what is read."""
_LATENCY = 8
"""Sums at least, so that additions do not wait for one another."""


def plane_registers(n: int, taps: int, channels: int, width: int, isa: Isa) -> int:
    """How many registers of neighbours in rows of `width` outputs to sum at a time; 0 where a product is better."""
    lanes, depth = isa.f32, taps * channels
    if n > _MOST or lanes < 4 or width < lanes:
        return 0
    room = min(_ACCUMULATORS, isa.registers // 2) // n
    counts = [r for r in (8, 6, 5, 4, 3, 2, 1) if r <= room and r * lanes <= width]
    if not counts:
        return 0
    registers = min(counts, key=lambda r: -(-width // (r * lanes)) * _cycles(r, n, depth))
    outputs = width / (-(-width // (registers * lanes)))
    own = _cycles(registers, n, depth) / outputs + _TURNED * channels + _WOVEN * n
    return registers if own < _GAIN * depth / 2 else 0


def _cycles(registers: int, n: int, depth: int) -> float:
    """Cycles for so many registers of outputs of all filters: two products or loads a cycle."""
    sums = registers * n
    return depth * max(sums / 2, (registers + n) / 2, _LATENCY / 2 if sums < _LATENCY else 0, 1.0) + 4 * sums
