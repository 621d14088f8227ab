"""Register tiles, and the cycles that a processor takes for one."""

from __future__ import annotations

import math
from functools import cache
from typing import TypeVar

from onert.ir import Array
from onert_llvm.target.isa import Isa, narrowed
from onert_llvm.target.machines import Machine, machine

_DISPLACED = 2.0
"""Cycles of a step for each row of a tile that the first cache does not hold beside the others."""

_PERIOD = 4096
"""Bytes after which lines are in the same set of a first cache: it is looked up while a page's address is."""

_MANY_SUMS, MANY_PAIRED_SUMS = 16, 12
"""Sums of a tile of floats beyond which it takes longer to begin and to end it, and of one of pairs, which are stored
for a transform.
"""

SPLITS = (1, 2, 4)
"""In how many accumulators a tile of floats may add each sum, so that additions do not wait for one another."""

_MUCH_FASTER = 0.9
"""What part of the time products of half registers may take: they have code of their own."""

_Steps = TypeVar("_Steps", float, Array)


def block_cycles(
    mr: int, vectors: int, k: _Steps, cpu: Machine, integer: bool = False, split: int = 1, many: int = _MANY_SUMS
) -> _Steps:
    """Cycles of one tile of `k` steps: the processor's products a cycle, but no faster than panels are read and than
    additions to an accumulator follow each other; each sum of floats has `split` of these.

    What a tile and a step take beside was fitted to measurements. Rows of bytes are spread first.
    """
    rate, more = (cpu.dots, cpu.spread) if integer else (cpu.products, 0.0)
    least = cpu.latency / 2 if integer else max(cpu.latency / split, cpu.float_panel * vectors)
    products = max(mr * (vectors + more) / rate, (mr + vectors) / 2, least)
    begin, of_row, of_sum = (cpu.block, 0.0, 0.0) if integer else cpu.float_block
    step, row, column = (cpu.step, cpu.row, cpu.column) if integer else cpu.float_step
    beside = begin + of_row * mr + of_sum * max(0, mr * vectors - many)
    return beside + k * (products + step + row * mr + column * vectors)


def displaced_cycles(mr: int, k: float, apart: int, cpu: Machine) -> float:
    """Cycles lost in a tile of `k` steps whose rows lie so many bytes `apart`, 0 where that is not known.

    A set of the first cache holds only some of the lines that are multiples of `_PERIOD` apart. Where more rows are
    read side by side, each line is fetched again for each of its elements.
    """
    more = mr - lines_held(apart, cpu) if apart else 0
    return _DISPLACED * k * more if more > 0 else 0.0


def lines_held(apart: int, cpu: Machine) -> int:
    """How many lines that lie so many bytes `apart` the first cache holds."""
    return _PERIOD // math.gcd(apart, _PERIOD) * (cpu.first_cache // _PERIOD)


@cache
def register_tiles(isa: Isa, integer: bool, widest: int = 4) -> tuple[tuple[int, int], ...]:
    """Rows by registers of columns whose accumulators, with a row of columns and two more, fit the registers.

    Of integers three more: what spreads a row over the lanes takes a constant.
    """
    spare = 3 if integer else 2
    return tuple(
        (mr, wide)
        for wide in range(widest, 0, -1)
        for mr in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
        if mr * wide + wide + spare <= isa.registers
    )


def fits(mr: int, wide: int, split: int, isa: Isa) -> bool:
    """Whether a tile of floats fits the registers with so many accumulators for each sum; any does with one."""
    return split == 1 or mr * wide * split + wide + 2 <= isa.registers


def lanes_to_choose(isa: Isa) -> tuple[Isa, ...]:
    """A target, and its half registers where the processor multiplies more of them in a cycle: fewer of their columns
    are none of a product's. Products of pairs are for whole registers alone.
    """
    whole = not isa.rounds or isa.bfloat or machine(isa).halves == 1
    return (isa,) if whole else (isa, narrowed(isa))


def worth_code(isa: Isa, cycles: float) -> float:
    """The cycles, more if they are of half registers: these are taken where they are faster by far."""
    return cycles / _MUCH_FASTER if isa.narrow else cycles
