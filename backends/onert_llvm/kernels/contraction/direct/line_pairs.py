"""Products of bfloat16 rows, which may begin at any element."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I16, Kernel, Val
from onert_llvm.kernels.contraction import contraction
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.kernels.contraction.contraction import Reading, Sums
from onert_llvm.kernels.contraction.float_microkernel import accumulators, add_half, multiply_add
from onert_llvm.kernels.contraction.register_tile import Block, Tile


@frozen
class PairsOfLines(contraction.Terms):
    """bfloat16 times bfloat16, in pairs, summed in float32. B has rows of pairs for each tap; the element after an odd
    number of a row's elements is not multiplied."""

    name = "f32"
    element = I16

    def group(self, k: Kernel) -> int:
        return 2

    def sums(
        self, k: Kernel, task: Task, tile: Tile, block: Block, begin: Callable[[int], Val], reading: Reading
    ) -> Sums:
        acc = accumulators(k, [begin(j) for j in range(block.vectors)], block.count)
        assert reading.depth is not None
        assert reading.depth.constant is not None
        pairs, odd = divmod(reading.depth.constant, 2)
        panels = k.view(block.panel, F32, (pairs + odd) * block.width, block.width, 1)
        with reading.each() as run:
            assert run.tap is not None
            words = [k.view(row.address, F32, 1) for row in run.rows]
            multiply_add(k, acc, words, panels[run.tap], k.index(pairs), terms=Terms.PAIRED, align=2)
            if odd:
                add_half(k, acc, [row[2 * pairs] for row in run.rows], panels[run.tap], pairs)
        return [[x.get() for x in row] for row in acc]
