"""Rows of selected elements, each of which is repeated."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I64, Kernel, Val

from .strided_copy import ELEMENTS, copy_run


@frozen
class RepeatedRows(Value):
    """`out[plane, first + i, j] = x[plane, row, columns[j]]` for `i` below `times`, elements of `unit` bytes, a size of
    an integer.

    `rows` has the row, the first and the times of each of `count` runs. There are `width` columns, and `x_row`,
    `x_plane` and `out_plane` bytes in a row or plane. Work tiles are the runs of all planes.
    """

    unit: int

    slots = ("x", "out", "rows", "columns", "count", "width", "x_row", "x_plane", "out_plane")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        (element, _), width = ELEMENTS[self.unit], task.i64("width")
        with k.loop(end, begin) as tile:
            plane, run = tile // task.i64("count"), tile % task.i64("count")
            row, first, times = (task.view("rows", I64, 3, 1)[run, i].load() for i in range(3))
            x = task.view("x", I8, 1)[plane * task.i64("x_plane") + row * task.i64("x_row")]
            out = task.view("out", I8, 1)[plane * task.i64("out_plane") + first * width * self.unit]
            source, made = (k.view(side.address, element, 1) for side in (x, out))
            for j, some in k.pieces(width, 4):
                places = [task.view("columns", I64, 1)[j + at].load() for at in range(some)]
                for at, value in enumerate([source[place].load() for place in places]):
                    made[j + at].store(value)
            with k.loop(times, 1) as i:
                copy_run(k, made, k.view(made[i * width].address, element, 1), width)
