"""The greatest elements of each row in order, and running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from attrs import define, frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Val, View, vec
from onert_llvm.kernels.arithmetic.expression import Kind

from .ranking import Ranking, greater

_TOGETHER = 8
"""The registers of columns that are summed together, so that rows are read and written in runs of whole lines."""

_WORDS = {8: I8, 16: I16, 32: I32, 64: I64}
"""Integers with one bit per lane, by the number of lanes."""


@frozen
class Greatest(Value):
    """`values[row]` and `places[row]`: the `k` greatest of x[row, :width] in descending order, and their positions.

    Among equal elements the one at the lower position comes first; NaN comes before all numbers. `wide`: positions are
    64-bit integers. `least`: the order is reversed (NaN last), except among equals. `levels` is how often k can be
    halved until it is 0. Work tiles are rows.

    While a row is read, the results form a heap with the last of them on top; it is ordered afterwards. If the row is
    `long`, the greatest elements of groups of `group` elements are put into the heap first: at least k elements are not
    less than the last of these, and the others need not be put into the heap.
    """

    kind: Kind
    wide: bool
    least: bool
    long: bool = False

    slots = ("x", "values", "places", "width", "k", "levels", "group")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        memory, width, count = self.kind.memory, task.i64("width"), task.i64("k")
        place = I64 if self.wide else I32
        with k.loop(end, begin) as row:
            x = k.view(task.view("x", memory, width)[row].address, memory, 1)
            values = k.view(task.view("values", memory, count)[row].address, memory, 1)
            places = k.view(task.view("places", place, count)[row].address, place, 1)
            heap = _Heap(k, self, values, places, task.i64("levels"))
            if self.long and k.isa.lanes(memory.width) > 1:
                self._sieve(k, heap, x, count, width, task.i64("group"))
            else:
                with k.loop(count) as i:
                    heap.store(i, x[i].load(), i)
                heap.order(count)
                self._offer(k, heap, x, count, width)
            ranking = Ranking(self.kind, self.least, arranged=False)
            with k.either((count <= ranking.most(k)) & (width < 1 << 31)) as (few, many):
                with few:
                    ranking.order(k, heap.load, count, values, places)
                with many, k.loop(count, 1) as i:
                    end_ = count - i
                    least, last = heap.load(k.index(0)), heap.load(end_)
                    heap.store(end_, *least)
                    heap.sift(k.index(0), end_, *last)

    def _sieve(self, k: Kernel, heap: _Heap, x: View, count: Val, width: Val, group: Val) -> None:
        lanes = k.isa.lanes(self.kind.memory.width)
        blocks = width // lanes // group
        first_blocks = (count + (lanes - 1)) // lanes

        def greatest(block: Val) -> Val:
            """The greatest elements of a block's groups: each lane of its registers is a group."""
            found = k.var(x[block * group * lanes].load(lanes))
            with k.loop(group, 1) as i:
                some = x[(block * group + i) * lanes].load(lanes)
                found.set(heap.greater(some, found.get()).select(some, found.get()))
            return found.get()

        with k.loop(first_blocks) as block:
            some = greatest(block)
            with k.loop((block * lanes + lanes).min(count) - block * lanes) as i:
                heap.store(block * lanes + i, some.lane(i), block * lanes + i)
        heap.order(count)
        with k.loop(blocks, first_blocks) as block:
            some = greatest(block)
            marks = heap.greater(some, heap.values[0].load().splat(lanes))
            self._each(k, marks, lambda i: heap.offer(count, some.lane(i), block * lanes + i))
        least, found = heap.values[0].load(), k.var(k.index(0))

        def keep(i: Val) -> None:
            value, place = x[i].load(), found.get()
            with k.when(place >= count):
                heap.offer(count, value, i)
            with k.when(place < count):
                heap.store(place, value, i)
                found.set(place + 1)
                with k.when((place + 1).eq(count)):
                    heap.order(count)

        whole = width - width % lanes
        with k.loop(whole, step=lanes) as first:
            less = heap.greater(least.splat(lanes), x[first].load(lanes))
            self._each(k, less ^ -1, lambda i: keep(first + i))
        with k.loop(width, whole) as i, k.when(heap.greater(least, x[i].load()) ^ -1):
            keep(i)

    def _offer(self, k: Kernel, heap: _Heap, x: View, count: Val, width: Val) -> None:
        """Offer the elements after the initial heap; registers without an element greater than its top are skipped."""
        lanes = k.isa.lanes(self.kind.memory.width)
        whole = count
        if lanes > 1:
            whole = width - (width - count) % lanes
            with k.loop(whole, count, step=lanes) as first:
                some = x[first].load(lanes)
                greater = heap.greater(some, heap.values[0].load().splat(lanes))
                self._each(k, greater, lambda i: heap.offer(count, x[first + i].load(), first + i))
        with k.loop(width, whole) as i:
            heap.offer(count, x[i].load(), i)

    @staticmethod
    def _each(k: Kernel, marks: Val, use: Callable[[Val], None]) -> None:
        """`use` the number of each lane that is marked, in order; of each lane, if there is no integer with a bit for
        every lane, and one is marked."""
        lanes = marks.lanes
        word = _WORDS.get(lanes)
        with k.when(marks.any()):
            if word is None:
                with k.loop(lanes) as i:
                    use(i)
            else:
                left = k.var(marks.bits(word).cast(I64, signed=False))
                with k.loop(left.get().ones(), nonempty=True):
                    below = (left.get() - 1) & (left.get() ^ -1)
                    use(below.ones())
                    left.set(left.get() & (left.get() - 1))


@define(eq=False)
class _Heap:
    """Values and their positions; no element precedes its two children in the result."""

    k: Kernel
    task: Greatest
    values: View
    places: View
    levels: Val

    def load(self, at: Val) -> tuple[Val, Val]:
        return self.values[at].load(), self.places[at].load().cast(I64)

    def store(self, at: Val, value: Val, place: Val) -> None:
        self.values[at].store(value)
        self.places[at].store(place.cast(self.places.element))

    def order(self, size: Val) -> None:
        """Make a heap of the first `size` elements."""
        half = size // 2
        with self.k.loop(half) as i:
            at = half - 1 - i
            self.sift(at, size, *self.load(at))

    def offer(self, size: Val, value: Val, place: Val) -> None:
        """Replace the element on top by one that precedes it."""
        with self.k.when(self.before((value, place), self.load(self.k.index(0)))):
            self.sift(self.k.index(0), size, value, place)

    def before(self, one: tuple[Val, Val], other: tuple[Val, Val]) -> Val:
        """Whether one precedes the other in the result."""
        (a, i), (b, j) = one, other
        equal = a.eq(b)
        if self.task.kind.is_float:
            equal = equal | (a.ne(a) & b.ne(b))
        return self.greater(a, b) | (equal & (i < j))

    def greater(self, a: Val, b: Val) -> Val:
        """Whether one precedes the other regardless of position."""
        return greater(self.task.kind, self.task.least, a, b)

    def sift(self, top: Val, size: Val, value: Val, place: Val) -> None:
        """Insert an element at `top`, below which the heap is valid, and sift it down among `size` elements."""
        k = self.k
        at, open_ = k.var(top), k.var(k.const(k.index(0).eq(0).type, 1))
        with k.loop(self.levels):
            left = at.get() * 2 + 1
            with k.when(open_.get() & (left < size)):
                right = (left + 1).min(size - 1)
                child = self.before(self.load(left), self.load(right)).select(right, left)
                found = self.load(child)
                sinks = self.before((value, place), found)
                with k.when(sinks):
                    self.store(at.get(), *found)
                at.set(sinks.select(child, at.get()))
                open_.set(sinks)
        self.store(at.get(), value, place)


@frozen
class RunningSum(Value):
    """`out[block, row, column]` = the sum of `x[block, r, column]` for the rows r up to this one, in order.

    `exclusive` omits the row itself, `reverse` begins at the last row. There are `rows` of `width` columns; work tile t
    is block t // `pieces`, and `piece` of its columns.
    """

    kind: Kind
    exclusive: bool
    reverse: bool

    slots = ("x", "out", "rows", "width", "piece", "pieces")
    neutral: ClassVar[int] = 0

    @staticmethod
    def joined(before: Val, element: Val) -> Val:
        return before + element

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.f32, task.i64("width")
        with k.loop(end, begin) as tile:
            block, first = tile // task.i64("pieces"), (tile % task.i64("pieces")) * task.i64("piece")
            last = (first + task.i64("piece")).min(width)
            wide = _TOGETHER * lanes
            most = last - (last - first) % wide
            with k.loop(most, first, step=wide) as column:
                self._columns(k, task, block, column, wide)
            for column, count in k.pieces(last, lanes, most):
                self._columns(k, task, block, column, count)

    def _columns(self, k: Kernel, task: Task, block: Val, column: Val, lanes: int) -> None:
        memory, rows, width = self.kind.memory, task.i64("rows"), task.i64("width")
        x, out = (k.view(task.view(n, memory, rows * width)[block].address, memory, width, 1) for n in ("x", "out"))
        total = k.var(k.const(vec(memory, lanes), self.neutral))
        with k.loop(rows) as row:
            at = rows - 1 - row if self.reverse else row
            before = total.get()
            total.set(self.joined(before, x[at, column].load(lanes)))
            out[at, column].store(before if self.exclusive else total.get())


@frozen
class RunningProduct(RunningSum):
    """The same for products; integers wrap."""

    neutral = 1

    @staticmethod
    def joined(before: Val, element: Val) -> Val:
        return before * element
