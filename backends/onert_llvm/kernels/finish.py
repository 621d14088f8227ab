"""A tile of a float32 product from its first value to memory."""

from __future__ import annotations

from collections.abc import Callable

from onert_llvm.abi import Task
from onert_llvm.build import F32, Kernel

from .epilogue import Epilogue, row_windows
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
    c = task.view("c", F32, task.i64("ldc"), 1)
    for i in range(len(block.rows)):
        out = block.place(c, i)
        others = {n: block.place(v, i) for n, v in row_windows(k, task, epilogue.matrices).items()}
        for j in columns:
            value = epilogue.apply(k, task, acc[i][j].get(), block.at(j), j * k.isa.f32, others, block.own(j))
            out[j * k.isa.f32].store(value, block.own(j))
