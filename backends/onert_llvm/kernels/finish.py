"""A tile of a float32 product from its first value to memory."""

from __future__ import annotations

from collections.abc import Callable

from onert_llvm.abi import Task
from onert_llvm.build import F32, Kernel

from .epilogue import RESIDUAL, Epilogue, row_windows
from .product import Accumulators, accumulators
from .tile import Block


def finish(
    k: Kernel, task: Task, block: Block, epilogue: Epilogue, product: Callable[[Block, Accumulators], None]
) -> None:
    """Accumulators that begin as the epilogue says, what `product` adds to them, and the epilogue's values stored."""
    columns = range(block.vectors)
    start = [epilogue.start(k, task, block.at(j), k.isa.f32, block.own(j)) for j in columns]
    acc = accumulators(k, start, len(block.rows))
    product(block, acc)
    if epilogue.residual:
        _add_residual(k, task, block, acc)
    given = epilogue.given(task, k.isa.f32)
    c = task.view("c", F32, task.i64("ldc"), 1)
    matrices = row_windows(k, task, epilogue.matrices)
    for i in range(len(block.rows)):
        out = block.place(c, i)
        others = {n: block.place(v, i) for n, v in matrices.items()}
        for j in columns:
            value = epilogue.apply(k, task, acc[i][j].get(), block.at(j), j * k.isa.f32, others, block.own(j), given)
            out[j * k.isa.f32].store(value, block.own(j))


def _add_residual(k: Kernel, task: Task, block: Block, acc: Accumulators) -> None:
    """Add to the accumulators the residual, where there is one."""
    with k.when(task.i64(RESIDUAL).ne(0)):
        (matrix,) = row_windows(k, task, (RESIDUAL,)).values()
        for i, row in enumerate(acc):
            place = block.place(matrix, i)
            for j, x in enumerate(row):
                x.set(place[j * k.isa.f32].load(k.isa.f32, block.own(j)) + x.get())
