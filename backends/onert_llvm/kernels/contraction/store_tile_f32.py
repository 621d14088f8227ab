"""A tile of a float32 product from its first value to memory."""

from __future__ import annotations

from collections.abc import Callable

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Val
from onert_llvm.kernels.arithmetic.expression import is_little

from .epilogue import RESIDUAL, Epilogue, row_windows
from .float_microkernel import Accumulators, accumulators
from .register_tile import Block, Row


def finish(
    k: Kernel, task: Task, block: Block, epilogue: Epilogue, product: Callable[[Block, Accumulators], None]
) -> None:
    """Accumulators that begin as the epilogue says, what `product` adds to them, and the epilogue's values stored."""
    columns = range(block.vectors)
    start = [epilogue.start(k, task, block.at(j), k.isa.f32, block.own(j)) for j in columns]
    acc = accumulators(k, start, block.count)
    product(block, acc)
    if epilogue.residual:
        _add_residual(k, task, block, acc)
    given = epilogue.given(task, k.isa.f32)
    c = task.view("c", F32, task.i64("ldc"), 1)
    matrices = row_windows(k, task, epilogue.matrices)

    def column(j: int) -> Callable[[Row, Val], None]:
        def write(row: Row, value: Val) -> None:
            others = {n: row.place(v, j) for n, v in matrices.items()}
            out = epilogue.apply(k, task, value, block.at(j), others, block.own(j), given)
            row.place(c, j).store(out, block.own(j))

        return write

    block.finish([[x.get() for x in row] for row in acc], column, is_little(epilogue.tree))


def _add_residual(k: Kernel, task: Task, block: Block, acc: Accumulators) -> None:
    """Add to the accumulators the residual, where there is one."""
    with k.when(task.i64(RESIDUAL).ne(0)):
        (matrix,) = row_windows(k, task, (RESIDUAL,)).values()
        for row, sums in zip(block.results(), acc, strict=True):
            for j, x in enumerate(sums):
                x.set(row.place(matrix, j).load(k.isa.f32, block.own(j)) + x.get())
