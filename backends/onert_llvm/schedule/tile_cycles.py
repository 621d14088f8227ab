"""Register tiles and their estimated cycles."""

from __future__ import annotations

import math
from functools import cache
from typing import TypeVar

from onert.ir import Array
from onert_llvm.target.isa import Isa, narrowed
from onert_llvm.target.machines import Machine, machine

_DISPLACED = 2.0
"""Cycles per step for each row of a tile that the first-level cache cannot hold beside the others."""

_PERIOD = 4096
"""The distance in bytes between lines in the same set of a first-level cache, which is indexed within a page."""

_LONG_ROW = 256
"""Columns from which the order in which rows of results are written matters."""

_SHORT_SUM = 32
"""Terms up to which writing results takes longer than reading the right operand from the second-level cache."""

_MANY_SUMS, MANY_PAIRED_SUMS = 16, 12
"""Sums of a tile of floats beyond which beginning and ending it take longer, and the same for a tile of pairs, which is
stored for a transform.
"""

SPLITS = (1, 2, 4)
"""The numbers of accumulators that a tile of floats may have per sum, so that additions do not wait for one another."""

_BY_LOAD = 1 / 6
"""The part of the cost of broadcasting a row if a load does it."""

_MUCH_FASTER = 0.9
"""The maximum relative time of products with half registers: they need code of their own."""

_Steps = TypeVar("_Steps", float, Array)


def block_cycles(
    mr: int,
    vectors: int,
    k: _Steps,
    cpu: Machine,
    integer: bool = False,
    widened: bool = False,
    split: int = 1,
    many: int = _MANY_SUMS,
) -> _Steps:
    """Cycles of one tile of `k` steps: limited by the processor's products per cycle, by reading panels, and by the
    latency of dependent additions; each float sum has `split` accumulators.

    Overheads of tiles and steps were fitted to measurements. Rows of bytes are broadcast first; if `widened`, by their
    loads.
    """
    rate, more = (cpu.dots, cpu.spread * (_BY_LOAD if widened else 1)) if integer else (cpu.products, 0.0)
    least = cpu.latency / 2 if integer else max(cpu.latency / split, cpu.float_panel * vectors)
    products = max(mr * (vectors + more) / rate, (mr + vectors) / 2, least)
    begin, of_row, of_sum = (cpu.block, 0.0, 0.0) if integer else cpu.float_block
    step, row, column = (cpu.step, cpu.row, cpu.column) if integer else cpu.float_step
    beside = begin + of_row * mr + of_sum * max(0, mr * vectors - many)
    return beside + k * (products + step + row * mr + column * vectors)


def displaced_cycles(mr: int, k: float, row_stride: int, cpu: Machine) -> float:
    """Cycles lost in a tile of `k` steps whose rows are `row_stride` bytes from one another; 0 if that is unknown (0).

    A set of the first-level cache holds only some of the lines that are multiples of `_PERIOD` apart. If more rows are
    read side by side, each line is fetched again for each of its elements.
    """
    more = mr - lines_held(row_stride, cpu) if row_stride else 0
    return _DISPLACED * k * more if more > 0 else 0.0


def is_mostly_written(m: int, n: int, k: int, cpu: Machine) -> bool:
    """Whether long rows of results of a product of floats do not stay in the second-level cache, but its right operand
    does in the first-level one, or, if sums are short, in a part of the second: then rows should be written in
    sequence, in as few streams as possible.
    """
    room = cpu.second_cache // 4 if k <= _SHORT_SUM else cpu.first_cache
    return 4 * k * n <= room and n >= _LONG_ROW and 8 * m * n > cpu.second_cache


def lines_held(row_stride: int, cpu: Machine) -> int:
    """How many lines that are `row_stride` bytes from one another the first-level cache holds."""
    return _PERIOD // math.gcd(row_stride, _PERIOD) * (cpu.first_cache // _PERIOD)


@cache
def register_tiles(isa: Isa, integer: bool, widest: int = 4) -> tuple[tuple[int, int], ...]:
    """Tiles (rows, registers of columns) whose accumulators, a row of columns and two spare registers fit.

    Integers need three spare registers: broadcasting a row takes a constant.
    """
    spare = 3 if integer else 2
    return tuple(
        (mr, wide)
        for wide in range(widest, 0, -1)
        for mr in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
        if mr * wide + wide + spare <= isa.registers
    )


def fits(mr: int, wide: int, split: int, isa: Isa) -> bool:
    """Whether a tile of floats fits the registers with `split` accumulators per sum; any does with one."""
    return split == 1 or mr * wide * split + wide + 2 <= isa.registers


def lanes_to_choose(isa: Isa) -> tuple[Isa, ...]:
    """The target, and its half registers if the processor multiplies more of those per cycle: they waste fewer lanes on
    columns that a product does not have. Products of pairs use whole registers only.
    """
    whole = not isa.rounds or isa.bfloat or machine(isa).halves == 1
    return (isa,) if whole else (isa, narrowed(isa))


def worth_code(isa: Isa, cycles: float) -> float:
    """The cycles, increased for half registers so that these are chosen only if they are much faster."""
    return cycles / _MUCH_FASTER if isa.narrow else cycles
