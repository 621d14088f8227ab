"""Few elements in order: the place of each is the number of those that precede it, which takes no branches."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I32, I64, Kernel, Val, Var, View, vec
from onert_llvm.irbuilder.math import bits_of
from onert_llvm.kernels.arithmetic.expression import Kind

_BLOCKS, _EACH = 4, 32
"""The registers of elements that are compared at a time, and the most elements per lane: sorting more takes fewer steps
than comparing each element with all."""


def greater(kind: Kind, least: bool, a: Val, b: Val) -> Val:
    """Whether one value precedes the other in descending order, NaN first; with `least` in the reverse order."""
    if least:
        a, b = b, a
    found = b.ult(a) if kind.unsigned else a > b
    return found | (a.ne(a) & b.eq(b)) if kind.is_float else found


@frozen
class Ranking(Value):
    """Orders up to `most(k)` elements as `Greatest` does, with their positions, which are below 2**31. Unless they are
    `arranged` by position, equal elements are compared by that."""

    kind: Kind
    least: bool
    arranged: bool

    def most(self, k: Kernel) -> int:
        """The most elements that are ordered like this."""
        return _EACH * k.isa.lanes(self.kind.memory.width)

    def order(self, k: Kernel, given: Callable[[Val], tuple[Val, Val]], count: Val, values: View, places: View) -> None:
        """Store in order the elements and positions, 64 bits each, that are `given` by number."""
        memory, lanes = self.kind.memory, k.isa.lanes(self.kind.memory.width)
        whole, most = I64 if memory.width == 64 else I32, self.most(k) + (_BLOCKS - 1) * lanes
        keys, kept, positions, ranks = (
            k.view(k.scratch(t, size), t, 1)
            for t, size in ((whole, most), (memory, most), (I32, most), (I32, _BLOCKS * lanes))
        )
        with k.loop(count) as i:
            value, place = given(i)
            kept[i].store(value)
            positions[i].store(place.cast(I32))
        with k.loop(count, step=lanes) as i:
            keys[i].store(self._key(k, kept[i].load(lanes)))
        with k.loop(count, step=_BLOCKS * lanes) as first:
            firsts = [first + b * lanes for b in range(_BLOCKS)]
            own = [(keys[b].load(lanes), positions[b].load(lanes), k.var(k.zeros(I32, lanes))) for b in firsts]
            end = (first + _BLOCKS * lanes).min(count)
            if self.arranged:
                with k.loop(first) as j:
                    _add(own, lambda key, _: keys[j].load().splat(lanes) >= key)
            with k.loop(*((end, first) if self.arranged else (count, 0))) as j:
                other, there = keys[j].load().splat(lanes), positions[j].load().splat(lanes)
                _add(own, lambda key, place: (other > key) | (other.eq(key) & (there < place)))
            if self.arranged:
                with k.loop(count, end) as j:
                    _add(own, lambda key, _: keys[j].load().splat(lanes) > key)
            for b, (_, _, before) in enumerate(own):
                ranks[b * lanes].store(before.get())
            with k.loop(end, first) as i:
                rank = ranks[i - first].load().cast(I64)
                values[rank].store(kept[i].load())
                places[rank].store(positions[i].load().cast(places.element))

    def _key(self, k: Kernel, x: Val) -> Val:
        """Integers, greater for elements that precede others. NaN counts as the greatest."""
        width = int(self.kind.memory.width)
        if self.kind.is_float:
            bits = bits_of(x + 0.0)  # a zero is positive then
            key = bits ^ ((bits >> (width - 1)) & ((1 << (width - 1)) - 1))
            key = x.ne(x).select((1 << (width - 1)) - 1, key)
        else:
            key = x.cast(vec(I64 if width == 64 else I32, x.lanes).element, self.kind.signed)
            if self.kind.unsigned and width >= 32:
                key = key ^ -(1 << (width - 1))
        return key ^ -1 if self.least else key


def _add(own: list[tuple[Val, Val, Var]], ahead: Callable[[Val, Val], Val]) -> None:
    """Count the lanes that an element is ahead of."""
    for key, place, before in own:
        before.set(before.get() + ahead(key, place).cast(I32, signed=False))


@frozen
class First(Value):
    """`values[row]` and `places[row]`: what `Greatest` finds with a k of 1. Work tiles are rows."""

    kind: Kind
    wide: bool
    least: bool

    slots = ("x", "values", "places", "width")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        memory, width, lanes = self.kind.memory, task.i64("width"), k.isa.lanes(self.kind.memory.width)
        place, counter = I64 if self.wide else I32, I64 if memory.width == 64 else I32
        whole = width - width % lanes if lanes > 1 else k.index(0)
        with k.loop(end, begin) as row:
            x = k.view(task.view("x", memory, width)[row].address, memory, 1)
            best, at = k.var(x[0].load()), k.var(k.index(0))
            if lanes > 1:
                with k.when(whole > 0):
                    top, found = k.var(x[0].load(lanes)), k.var(k.zeros(counter, lanes))
                    with k.loop(whole, lanes, step=lanes) as i:
                        some = x[i].load(lanes)
                        first = greater(self.kind, self.least, some, top.get())
                        top.set(first.select(some, top.get()))
                        found.set(first.select(i.cast(counter).splat(lanes), found.get()))
                    value, number = self._of_lanes(top.get(), found.get() + k.iota(counter, lanes))
                    best.set(value)
                    at.set(number.cast(I64))
            with k.loop(width, whole) as i:
                value = x[i].load()
                first = greater(self.kind, self.least, value, best.get())
                best.set(first.select(value, best.get()))
                at.set(first.select(i, at.get()))
            task.view("values", memory, 1)[row].store(best.get())
            task.view("places", place, 1)[row].store(at.get().cast(place))

    def _of_lanes(self, values: Val, numbers: Val) -> tuple[Val, Val]:
        """The first of all lanes, and its number."""
        while values.lanes > 1:
            half = values.lanes // 2
            parts = (range(half), range(half, 2 * half)) if half > 1 else ()
            sides = [(values.shuffle(part), numbers.shuffle(part)) for part in parts]
            (a, i), (b, j) = sides or [(values.lane(at), numbers.lane(at)) for at in range(2)]
            ahead = greater(self.kind, self.least, a, b)
            second = greater(self.kind, self.least, b, a) | ((ahead ^ -1) & (j < i))
            values, numbers = second.select(b, a), second.select(j, i)
        return values, numbers
