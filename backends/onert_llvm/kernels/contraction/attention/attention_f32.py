"""Attention: products of queries with keys, their softmax, and products with values, one block of keys at a time.

Only the scores of some rows and keys are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from functools import reduce
from operator import or_

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, I64, Kernel, Type, Val, View
from onert_llvm.kernels.contraction.float_microkernel import accumulators, multiply_add
from onert_llvm.target.isa import Isa

from .softmax_rows import SoftmaxRows, groups, transpose_keys

MOST_ROWS, MOST_MASKED = 192, 48
"""Rows of queries that share a transposed block of keys; fewer with a mask, which then hides more keys from all."""
HIDDEN = -1e30
"""The upper limit of mask values for keys that a row does not see: their exponentials are 0 for any scores."""


class Mask(Enum):
    """How some keys are hidden from some rows."""

    ADDED = auto()
    """By floats that are added to the scores."""
    SHOWN = auto()
    """By bytes that are not 0 for keys that a row sees; the scores of others are a number."""
    HIDDEN = auto()
    """By bytes that are 0 for keys that a row sees."""


_BLOCK = 64
"""The fewest keys of a block: for each block the sums of all rows are read, rescaled and written."""


_SHARED = 24
"""From this many rows that read them on, copying a block of values pays."""


def registers_of_keys(isa: Isa) -> int:
    """Registers of keys that are multiplied together."""
    return 4 if isa.registers >= 32 else 2


def keys_of_block(isa: Isa) -> int:
    """Keys whose exponentials are computed before the values weighted by them are added to the sums of a row."""
    return max(registers_of_keys(isa) * isa.f32, _BLOCK)


def stores_scores(isa: Isa) -> bool:
    """Whether the scores of a block are stored, because they need more registers than are multiplied together."""
    return keys_of_block(isa) > registers_of_keys(isa) * isa.f32


@frozen
class AttentionF32(Value):
    """`C[batch, m, value] = softmax(scale * A · Kᵀ + mask) · V`, A `[batch, m, size]`, K `[keys, size]`.

    Rows are `a_row`, `k_row`, `v_row` and `c_row` elements apart. `offsets` has 64-bit integers for each batch: where
    its part of A, K, V, C and of each mask begins, in elements. Masks apply to the scores in turn; row r of scores gets
    row `r % mask0_rows` of the first, whose rows are `mask0_row` elements apart. Keys that a mask with `skips` hides
    from all rows of a tile are not read. `rows` are multiplied together. A work tile is `mc` rows, at most
    `MOST_ROWS`, of one batch; there are `per_batch` in each. If scores are not stored, and at most half of a block of
    keys is left, they are processed one register at a time; this may happen only with `rest`.
    """

    rows: int
    size: int
    value: int
    rest: bool
    masks: tuple[Mask, ...] = ()
    skips: tuple[bool, ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        extra: list[str] = []
        for at, mask in enumerate(self.masks):
            extra += [f"mask{at}", f"mask{at}_rows", f"mask{at}_row"]
            extra += [] if mask is Mask.ADDED else [f"hidden{at}"]
        strides = ("a_row", "k_row", "v_row", "c_row")
        own = ("a", "k", "v", "c", "offsets", "per_batch", "mc", "m", "keys", *strides, "scale")
        return (*own, *extra)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        rooms = _Rooms(k, self)
        with k.loop(end, begin) as t:
            batch, part = t // task.i64("per_batch"), t % task.i64("per_batch")
            first = part * task.i64("mc")
            count = (task.i64("m") - first).min(task.i64("mc"))
            _Tile(k, task, self, rooms, batch, first, count).write()


class _Rooms:
    """Stack memory: a transposed block of keys, the exponentials of some rows, and each row's maximum and sums; and a
    block of values if scores are stored.
    """

    def __init__(self, k: Kernel, how: AttentionF32) -> None:
        self.chunk = keys_of_block(k.isa)
        self.panel = k.view(k.scratch(F32, how.size * self.chunk), F32, self.chunk, 1)
        whole = stores_scores(k.isa)
        self.values = k.view(k.scratch(F32, how.value * self.chunk), F32, how.value, 1) if whole else None
        self.rows = SoftmaxRows(k, how.rows, self.chunk, MOST_ROWS)


class _Tile:
    """A work tile during code generation."""

    def __init__(
        self, k: Kernel, task: Task, how: AttentionF32, rooms: _Rooms, batch: Val, first: Val, count: Val
    ) -> None:
        self.k, self.task, self.how, self.rooms, self.count = k, task, how, rooms, count
        self.first = first
        names = ("a", "k", "v", "c", *(f"mask{at}" for at in range(len(how.masks))))
        offsets = task.view("offsets", I64, len(names), 1)

        def rows(name: str, begin: Val | int = 0, kind: Type = F32) -> View:
            apart = task.i64(f"{name}_row")
            start = task.view(name, kind, 1)[offsets[batch, names.index(name)].load() + apart * begin]
            return k.view(start.address, kind, apart, 1)

        self.queries, self.out = rows("a", first), rows("c", first)
        self.keys, self.values = rows("k"), rows("v")
        self.masks = [rows(f"mask{at}", kind=F32 if m is Mask.ADDED else I8) for at, m in enumerate(how.masks)]

    def write(self) -> None:
        k, chunk = self.k, self.rooms.chunk
        low, high = self._seen()
        self.low = low
        self._begin()
        whole = high
        if self.how.rest:
            rest = high % chunk
            whole = (rest > chunk // 2).select(high, high - rest)
        with k.loop(whole, low, step=chunk) as key:
            self._keys(key, high, chunk // k.isa.f32)
        if self.how.rest:
            with k.loop(high, whole, step=k.isa.f32) as key:
                self._keys(key, high, 1)
        self._end()

    def _keys(self, key: Val, end: Val, registers: int) -> None:
        """Update the state of all rows with a block of as many registers of keys."""
        last = self.task.i64("keys") - 1
        transpose_keys(self.k, self.keys, self.rooms.panel, self.how.size, registers * self.k.isa.f32, key, last)
        if self.rooms.values is not None:
            with self.k.when(self.count >= _SHARED):
                self._copy_values(self.rooms.values, key, end)
        if self.how.rows == 1:
            with self.k.loop(self.count, nonempty=True) as row:
                self._block(row, 1, key, end, registers)
            return
        for row, count in self.k.pieces(self.count, self.how.rows):
            self._block(row, count, key, end, registers)

    def _copy_values(self, room: View, key: Val, end: Val) -> None:
        """Bring a block of values together: lines that are far apart may share a few sets of the first-level cache."""
        k, lanes = self.k, self.k.isa.f32
        with k.loop((end - key).min(self.rooms.chunk), nonempty=True) as at:
            for column, _, mask in groups(k, self.how.value, 1):
                room[at, column].store(self.values[key + at, column].load(lanes, mask), mask)

    def _mask_row(self, at: int, row: Val) -> View:
        return self.masks[at][(self.first + row) % self.task.i64(f"mask{at}_rows")]

    def _seen(self) -> tuple[Val, Val]:
        """The range of key blocks from the first to the last that any row sees; all keys if some row sees none."""
        k, keys, chunk, lanes = self.k, self.task.i64("keys"), self.rooms.chunk, self.k.isa.f32
        skipping = [at for at, skips in enumerate(self.how.skips) if skips]
        if not skipping:
            return k.index(0), keys
        low, high = k.var(keys), k.var(k.index(0))
        with k.loop(self.count, nonempty=True) as number:
            rows = [self._mask_row(at, number) for at in skipping]
            own_low, own_high = k.var(keys), k.var(k.index(0))
            with k.loop(keys, step=chunk, nonempty=True) as at:
                shown = k.zeros(I32, lanes)
                for j in range(chunk // lanes):
                    here = at + j * lanes
                    inside = k.mask(lanes, keys - here)
                    each = [row[here.min(keys - 1)].load(lanes, inside) for row in rows]
                    hidden = reduce(or_, map(self._hidden, skipping, each))
                    shown = shown | inside.select(hidden.select(k.zeros(I32, lanes), 1), 0)
                some = shown.ne(0).any()
                own_low.set(some.select(own_low.get().min(at), own_low.get()))
                own_high.set(some.select((at + chunk).min(keys), own_high.get()))
            none = own_high.get().eq(0)
            low.set(low.get().min(none.select(k.index(0), own_low.get())))
            high.set(high.get().max(none.select(keys, own_high.get())))
        return low.get(), high.get()

    def _hidden(self, at: int, mask: Val) -> Val:
        """Whether elements of a mask hide keys."""
        if self.how.masks[at] is Mask.ADDED:
            return mask <= HIDDEN
        return mask.eq(0) if self.how.masks[at] is Mask.SHOWN else mask.ne(0)

    def _masked(self, scores: Sequence[Val], row: Val, key: Val, inside: Sequence[Val]) -> Sequence[Val]:
        """A row's scores for a block of keys, with the masks one after the other."""
        lanes = self.k.isa.f32
        for at, kind in enumerate(self.how.masks):
            place = self._mask_row(at, row)[key]
            masks = [place.after(j * lanes).load(lanes, lane) for j, lane in enumerate(inside)]
            if kind is Mask.ADDED:
                scores = [x + mask for x, mask in zip(scores, masks, strict=True)]
                continue
            number = self.task.f32(f"hidden{at}").splat(lanes)
            scores = [self._hidden(at, mask).select(number, x) for x, mask in zip(scores, masks, strict=True)]
        return scores

    def _begin(self) -> None:
        with self.k.loop(self.count, nonempty=True) as row:
            self.rooms.rows.begin(row)

    def _block(self, row: Val, count: int, key: Val, end: Val, vectors: int) -> None:
        """Compute the scores of `count` rows for a block of keys, and update the rows' state."""
        k, task, lanes, rooms = self.k, self.task, self.k.isa.f32, self.rooms
        if stores_scores(k.isa):
            self._stored_block(row, count, key, (end - key).min(rooms.chunk))
            return
        acc = accumulators(k, [k.zeros(F32, lanes)] * vectors, count)
        multiply_add(k, acc, [self.queries[row + i] for i in range(count)], rooms.panel, k.index(self.how.size))
        inside = [k.mask(lanes, end - key - j * lanes) for j in range(vectors)]
        scale = task.f32("scale").splat(lanes)
        corrections = []
        for i, sums in enumerate(acc):
            scores = self._masked([x.get() * scale for x in sums], row + i, key, inside)
            scores = [m.select(x, float("-inf")) for m, x in zip(inside, scores, strict=True)]
            corrections.append(rooms.rows.add(row + i, i, scores))
        self._weighted(row, count, corrections, key, (end - key).min(vectors * lanes))

    def _stored_block(self, row: Val, count: int, key: Val, keys: Val) -> None:
        """The same for `keys` keys, with a pass over stored scores for maxima and another for exponentials."""
        k, lanes, rooms, together = self.k, self.k.isa.f32, self.rooms, registers_of_keys(self.k.isa)
        scale = self.task.f32("scale").splat(lanes)
        with k.loop(keys, step=together * lanes, nonempty=True) as at:
            acc = accumulators(k, [k.zeros(F32, lanes)] * together, count)
            panel = k.view(rooms.panel[0, at].address, F32, rooms.chunk, 1)
            multiply_add(k, acc, [self.queries[row + i] for i in range(count)], panel, k.index(self.how.size))
            inside = [k.mask(lanes, keys - at - j * lanes) for j in range(together)]
            for i, sums in enumerate(acc):
                scores = self._masked([x.get() * scale for x in sums], row + i, key + at, inside)
                for j, (m, x) in enumerate(zip(inside, scores, strict=True)):
                    rooms.rows.powers[i, at + j * lanes].store(m.select(x, float("-inf")))
        corrections = rooms.rows.add_stored(row, count, keys, together)
        self._weighted(row, count, corrections, key, keys)

    def _weighted(self, row: Val, count: int, corrections: Sequence[Val], key: Val, keys: Val) -> None:
        """Add the values times the exponentials to the rows of results."""
        k, lanes, rooms = self.k, self.k.isa.f32, self.rooms
        powers = [rooms.rows.powers[k.index(i)] for i in range(count)]
        for column, wide, rest in groups(k, self.how.value, registers_of_keys(k.isa)):
            places = [self.out[row + i, column] for i in range(count)]
            masks = [*[None] * (wide - 1), rest]
            acc = accumulators(k, [k.zeros(F32, lanes)] * wide, count)
            with k.when(key > self.low):
                for place, correction, sums in zip(places, corrections, acc, strict=True):
                    for j, (x, mask) in enumerate(zip(sums, masks, strict=True)):
                        x.set(place.after(j * lanes).load(lanes, mask) * correction)
            start, apart = self.values[key, column].address, self.task.i64("v_row")
            if rooms.values is not None:
                near = self.count >= _SHARED
                start = near.select(rooms.values[0, column].address, start)
                apart = near.select(k.index(self.how.value), apart)
            panel = k.view(start, F32, apart, 1)
            multiply_add(k, acc, powers, panel, keys, mask=rest)
            for place, sums in zip(places, acc, strict=True):
                for j, (x, mask) in enumerate(zip(sums, masks, strict=True)):
                    place.after(j * lanes).store(x.get(), mask)

    def _end(self) -> None:
        with self.k.loop(self.count, nonempty=True) as row:
            self.rooms.rows.divide(row, self.out[row], self.how.value)
