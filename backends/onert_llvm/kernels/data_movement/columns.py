"""Pictures assembled from overlapping blocks."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Val


@frozen
class OverlappingColumns(Value):
    """`out[plane, y, :width]`: the sum of `x[plane, tap, step, row]` over the `down` taps and `across` steps of blocks,
    with y = row * stride + tap * tap_size - above, each moved by step * step_size - left.

    There are `rows` of blocks, and `columns` in a row. Work tiles are rows of `height` in each plane.
    """

    slots = (
        *("x", "out", "height", "width", "rows", "columns", "down", "across"),
        *("stride", "tap_size", "step_size", "above", "left"),
    )

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, (height, width, rows, columns, down, across) = k.isa.f32, (task.i64(name) for name in self.slots[2:8])
        block = rows * columns
        x = task.view("x", F32, down * across * block, across * block, block, columns, 1)
        with k.loop(end, begin) as tile:
            plane, y = tile // height, tile % height
            out = task.view("out", F32, width, 1)[tile]
            for at, mask in k.registers(width):
                out[at].store(k.zeros(F32, lanes), mask)
            with k.loop(down) as tap:
                place = y + task.i64("above") - tap * task.i64("tap_size")
                row = place // task.i64("stride")
                meets = (row * task.i64("stride")).eq(place)
                with k.when((place >= 0) & (row < rows) & meets), k.loop(across) as step:
                    moved = step * task.i64("step_size") - task.i64("left")
                    first = moved.max(0).min(width)
                    line = x[plane, tap, step, row]
                    for at, mask in k.registers((moved + columns).min(width).max(first), first, free=False):
                        out[at].store(out[at].load(lanes, mask) + line[at - moved].load(lanes, mask), mask)
