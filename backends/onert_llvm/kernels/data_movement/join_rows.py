"""Concatenates rows of several tensors, row by row, so that what is written stays in the first-level cache."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, Kernel, Val, View


@frozen
class JoinRows(Value):
    """Rows of `pitch` bytes, joined from `count` parts of `width0`, ... bytes, each at least one; work tiles are rows.

    `together` bytes are copied at a time, the last of each part under a mask.
    """

    count: int
    together: int

    name = "join_rows"

    @property
    def slots(self) -> tuple[str, ...]:
        return ("out", "pitch", *(f"{what}{i}" for i in range(self.count) for what in ("part", "width")))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        widths = [task.i64(f"width{i}") for i in range(self.count)]
        parts = [task.view(f"part{i}", I8, width, 1) for i, width in enumerate(widths)]
        lasts = [(width - 1) // self.together * self.together for width in widths]
        masks = [
            k.iota(I8, self.together) < (width - last).cast(I8).splat(self.together)
            for width, last in zip(widths, lasts, strict=True)
        ]
        out = task.view("out", I8, task.i64("pitch"), 1)
        with k.loop(end, begin) as row:
            there = out[row]
            for part, width, last, mask in zip(parts, widths, lasts, masks, strict=True):
                self._copy(k, part[row], there, last, mask)
                there = there.after(width)

    def _copy(self, k: Kernel, source: View, target: View, last: Val, mask: Val) -> None:
        with k.loop(last, step=self.together) as i:
            target[i].store(source[i].load(self.together))
        target[last].store(source[last].load(self.together, mask), mask)
