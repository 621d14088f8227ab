"""A box read from or written into a tensor at a position known only at run time."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, I64, Kernel, Val, View

from .strided_copy import copy_run


@frozen
class DynamicSlice(Value):
    """Bytes of a dense box copied from, or with `put` into, a part of `whole` that begins at given starts.

    Along axis i the box has `size{i}` entries (the last axis has none: it is the run of `width` bytes), and `start{i}`
    points to where it begins: an integer of 64 bits if `wide[i]`, else 32, clamped to 0 to `most{i}`. Entries of
    `whole` are `step{i}` bytes apart. Work tiles are runs.
    """

    put: bool
    wide: tuple[bool, ...]

    @property
    def name(self) -> str:
        return "put_part" if self.put else "take_part"

    @property
    def slots(self) -> tuple[str, ...]:
        axes = (f"{what}{i}" for i in range(len(self.wide)) for what in ("start", "most", "step"))
        sizes = (f"size{i}" for i in range(len(self.wide) - 1))
        return ("whole", "part", "width", *axes, *sizes)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        rank = len(self.wide)
        with k.loop(end, begin) as tile:
            place, rest = k.index(0), tile
            for i in reversed(range(rank)):
                at = k.index(0)
                if i < rank - 1:
                    at, rest = (rest % task.i64(f"size{i}"), rest // task.i64(f"size{i}")) if i else (rest, rest)
                place = place + (at + self._start(task, i)) * task.i64(f"step{i}")
            whole = task.view("whole", I8, 1)[place]
            part = task.view("part", I8, task.i64("width"), 1)[tile]
            source, target = (part, whole) if self.put else (whole, part)
            copy_run(k, self._bytes(k, source), self._bytes(k, target), task.i64("width"))

    def _start(self, task: Task, axis: int) -> Val:
        given = task.view(f"start{axis}", I64 if self.wide[axis] else I32, 1)[0].load_once().cast(I64)
        return given.clamp(0, task.i64(f"most{axis}"))

    def _bytes(self, k: Kernel, side: View) -> View:
        return k.view(side.address, I8, 1)
