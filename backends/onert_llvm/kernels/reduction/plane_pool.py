"""Pooling of float planes: neighbouring outputs of a row in the lanes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I1, Kernel, Val, Var, View, deinterleave

from .elements import Elements
from .fold import unordered


@frozen
class PlanePool(Value):
    """Pooling of images of one channel; work tiles are output rows, through all images.

    The rows of the `window` are folded first, a block of `stride` registers of columns at a time, whose columns are
    then taken apart by their place within the stride. The columns of windows are these, and those of the blocks before
    and after, shifted: `pad` columns of the first window are before the picture, and are neutral like those after it.
    The divisor of a mean is `divisors[output]`, the reciprocal of its number of pixels.
    """

    elements: Elements
    window: tuple[int, int]
    stride: int
    pad: int

    @property
    def slots(self) -> tuple[str, ...]:
        divisors = ("divisors",) if self.elements.mean else ()
        return ("input", "c", "in_h", "in_w", "out_h", "out_w", "stride_h", "pad_h", *self.elements.slots, *divisors)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        memory = self.elements.kind.memory
        height, width, out_w = (task.i64(name) for name in ("in_h", "in_w", "out_w"))
        with k.loop(end, begin) as line:
            image, y = line // task.i64("out_h"), line % task.i64("out_h")
            top = y * task.i64("stride_h") - task.i64("pad_h")
            plane = task.view("input", memory, height * width, width, 1)[image]
            rows = _Rows(k, self, plane, (top.max(0), (top + self.window[0]).min(height)), width)
            out = task.view("c", memory, out_w, 1)[line]
            before, here = ([k.var(rows.start) for _ in range(self.stride)] for _ in range(2))
            rows.block(k.index(0), here)
            with k.loop(out_w, step=k.isa.f32, nonempty=True) as at:
                after = [k.var(rows.start) for _ in range(self.stride)]
                rows.block(at + k.isa.f32, after)
                total, inside = self._total([before, here, after]), k.mask(k.isa.f32, out_w - at)
                with k.either(at + k.isa.f32 <= out_w) as (whole, tail):
                    for region, mask in ((whole, None), (tail, inside)):
                        with region:
                            self._store(k, task, out[at], total, y * out_w + at, mask)
                for old, now, new in zip(before, here, after, strict=True):
                    old.set(now.get())
                    now.set(new.get())

    def _total(self, blocks: Sequence[Sequence[Var]]) -> Val:
        """The fold of all columns of windows, from the columns before, here and after."""
        lanes, columns = blocks[0][0].get().lanes, list[Val]()
        for t in range(self.window[1]):
            by, place = divmod(t - self.pad, self.stride)
            first, second = (blocks[i][place].get() for i in ((0, 1) if by < 0 else (1, 2)))
            columns.append(first.shuffle(range(by % lanes, by % lanes + lanes), second) if by else first)
        return folded(columns, self.elements)

    def _store(self, k: Kernel, task: Task, out: View, total: Val, at: Val, mask: Val | None) -> None:
        divisor = None
        if self.elements.mean:
            divisor = task.view("divisors", self.elements.divisors, 1)[at].load(k.isa.f32, mask)
        out.store(self.elements.finish(k, task, total, divisor), mask)


def folded(values: Sequence[Val], elements: Elements) -> Val:
    """Some registers folded, in order."""
    total = reduce(elements.join_numbers, values)
    return unordered(values).select(float("nan"), total) if elements.tracks_nan and len(values) > 1 else total


class _Rows:
    """The rows of a window: `place` are the first and last inside of the picture, which has `width` columns."""

    def __init__(self, k: Kernel, pool: PlanePool, plane: View, place: tuple[Val, Val], width: Val) -> None:
        self._k, self._pool, self._plane, self._place, self._width = k, pool, plane, place, width
        self.start = pool.elements.start(k, k.isa.f32)

    def block(self, outputs: Val, columns: Sequence[Var]) -> None:
        """Set the columns, by their place within the stride, of the block at an output; neutral outside of the
        picture."""
        k, pool, lanes = self._k, self._pool, self._k.isa.f32
        at = outputs * pool.stride
        first, last = self._place
        for column in columns:
            column.set(self.start)
        places = [at + i * lanes for i in range(pool.stride)]
        masks = [k.mask(lanes, self._width - place) for place in places]
        with k.when(at < self._width), k.either(at + pool.stride * lanes <= self._width) as (whole, edge):
            for region, inside in ((whole, [None] * pool.stride), (edge, masks)):
                with region, k.either(last - first < pool.window[0]) as (some, every):
                    for own, found in ((some, self._some), (every, self._every)):
                        with own:
                            self._set(columns, [found(*each) for each in zip(places, inside, strict=True)])

    @staticmethod
    def _set(columns: Sequence[Var], found: list[Val]) -> None:
        for column, value in zip(columns, deinterleave(found), strict=True):
            column.set(value)

    def _load(self, row: Val, place: Val, mask: Val | None) -> Val:
        found = self._plane[row, place].load(self._k.isa.f32, mask)
        return found if mask is None else mask.select(found, self.start)

    def _every(self, place: Val, mask: Val | None) -> Val:
        """A register of columns, with all rows of the window."""
        rows = [self._load(self._place[0] + row, place, mask) for row in range(self._pool.window[0])]
        return folded(rows, self._pool.elements)

    def _some(self, place: Val, mask: Val | None) -> Val:
        """The same with fewer rows."""
        k, elements = self._k, self._pool.elements
        total, odd = k.var(self.start), k.var(k.zeros(I1, k.isa.f32))
        with k.loop(self._place[1], self._place[0]) as row:
            value = self._load(row, place, mask)
            total.set(elements.join_numbers(total.get(), value))
            if elements.tracks_nan:
                odd.set(odd.get() | value.unordered(value))
        return odd.get().select(float("nan"), total.get()) if elements.tracks_nan else total.get()
