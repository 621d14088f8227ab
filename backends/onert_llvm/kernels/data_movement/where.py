"""Positions of nonzero elements, and integers checked against a limit known at run time."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, I64, Kernel, Val, Var

_AT_ONCE = 8
"""Bytes tested as one integer: in most masks, most are 0."""


@frozen
class Places(Value):
    """`places[n, depth]` of the nonzero bytes of `condition`, in order, followed by zeros, and their `count`.

    `condition` has `size` bytes along `depth` axes of `d{i}`. There is one work tile.
    """

    depth: int

    @property
    def slots(self) -> tuple[str, ...]:
        return ("condition", "places", "count", "size", *(f"d{i}" for i in range(self.depth)))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        given, size = task.view("condition", I8, 1), task.i64("size")
        with k.loop(end, begin):
            count = k.var(k.index(0))
            whole = size - size % _AT_ONCE
            with k.loop(whole, step=_AT_ONCE) as i:
                some = given[i].load(_AT_ONCE).bits(I64).ne(0)
                with k.when(some), k.loop(i + _AT_ONCE, i, nonempty=True) as j:
                    self._one(k, task, count, j)
            with k.loop(size, whole) as j:
                self._one(k, task, count, j)
            with k.loop(size * self.depth, count.get() * self.depth) as rest:
                task.view("places", I64, 1)[rest].store(k.index(0))
            task.view("count", I64, 1)[0].store(count.get())

    def _one(self, k: Kernel, task: Task, count: Var, at: Val) -> None:
        with k.when(task.view("condition", I8, 1)[at].load().ne(0)):
            row = task.view("places", I64, self.depth, 1)[count.get()]
            for axis in reversed(range(1, self.depth)):
                length = task.i64(f"d{axis}")
                row[axis].store(at % length)
                at = at // length
            row[0].store(at)
            count.set(count.get() + 1)


@frozen
class Within(Value):
    """`out[i] = x[i]` if that is at least 0 and below `limit[0]` + `more`; else it is written to `report`, after a 1.

    With `counted` only the first `count[0]` entries of `width` integers each are checked and copied. The rest is 0.
    `wide`: x has 64-bit integers. Work tiles are single integers.
    """

    wide: bool
    counted: bool

    @property
    def slots(self) -> tuple[str, ...]:
        return ("x", "limit", "out", "report", "more", *(("count", "width") if self.counted else ()))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        element = I64 if self.wide else I32
        x, out = task.view("x", element, 1), task.view("out", element, 1)
        limit = task.view("limit", I64, 1)[0].load_once() + task.i64("more")
        last = end
        if self.counted:
            last = (task.view("count", I64, 1)[0].load_once() * task.i64("width")).clamp(0, end)
        with k.loop(last, begin) as i:
            found = x[i].load_once()
            at = found.cast(I64)
            with k.either((at >= 0) & (at < limit)) as (inside, outside):
                with inside:
                    out[i].store(found)
                with outside:
                    out[i].store(found - found)
                    task.report(at)
        if self.counted:
            with k.loop(end, last.max(begin)) as i:
                out[i].store(k.index(0).cast(element))
