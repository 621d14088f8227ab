"""Products of one row with a matrix whose columns are contiguous in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Val
from onert_llvm.kernels.contraction.contraction import Reading, Sums, Terms
from onert_llvm.kernels.contraction.register_tile import Block, Tile

_TOGETHER, _MANY_REGISTERS = 4, 32
"""Columns that are read at a time, and the fewest registers of a target that holds four of each."""


@frozen
class DotTerms(Terms):
    """float32 times float32, in tiles of one row by one register of columns, which are `ldb` elements apart.

    A few columns are read at a time, several registers of each, so there are few memory streams. At the end the
    registers of a sum are added, and their lanes pairwise.
    """

    name = "dots"
    element = F32

    def sums(
        self, k: Kernel, task: Task, tile: Tile, block: Block, begin: Callable[[int], Val], reading: Reading
    ) -> Sums:
        lanes, matrix = k.isa.f32, k.view(block.panel, F32, task.i64("ldb"), 1)
        room, left = k.view(k.scratch(F32, lanes * lanes), F32, lanes, lanes), task.i64("n") - block.column
        registers = range(4 if k.isa.registers >= _MANY_REGISTERS else 2)
        with reading.each() as run, k.loop(left.min(lanes), step=_TOGETHER, nonempty=True) as first:
            columns = [matrix[(first + number).min(left - 1)] for number in range(_TOGETHER)]
            sums = [[k.var(k.zeros(F32, lanes)) for _ in registers] for _ in columns]

            def add(at: Val, number: int, mask: Val | None) -> None:
                x = run.rows[0][at].load(lanes, mask)
                for column, own in zip(columns, sums, strict=True):
                    own[number].set(k.fma(x, column[at].load(lanes, mask), own[number].get()))

            step = len(registers) * lanes
            whole = run.depth - run.depth % step
            with k.loop(whole, step=step) as at:
                for number in registers:
                    add(at + number * lanes, number, None)
            for at, mask in k.registers(run.depth, whole):
                add(at, 0, mask)
            for number, own in enumerate(sums):
                total = own[0].get()
                for x in own[1:]:
                    total = total + x.get()
                room[first + number].store(total)
        return [[begin(0) + _of_lanes([room[number].load(lanes) for number in range(lanes)])]]


def _of_lanes(rows: Sequence[Val]) -> Val:
    """The sums of the lanes of each register, for as many registers as each has lanes."""
    span = lanes = rows[0].lanes
    while span > 1:
        low = [first + lane for first in range(0, 2 * lanes, span) for lane in range(span // 2)]
        high = [at + span // 2 for at in low]
        rows = [a.shuffle(low, b) + a.shuffle(high, b) for a, b in zip(rows[::2], rows[1::2], strict=True)]
        span //= 2
    return rows[0]
