"""Attention of a few rows of queries to keys and values as stored, of which each row sees those up to its own."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, I64, Kernel, Val, View
from onert_llvm.irbuilder.math import tanh
from onert_llvm.kernels.contraction.float_microkernel import accumulators, multiply_add

from .softmax_rows import SoftmaxRows, clear, groups, transpose_keys

_WIDE = 16
"""The most accumulators for weighted values."""


@frozen
class CachedF32(Value):
    """`y = softmax(scale * q · kᵀ + bias) · v`, with `rows` queries multiplied together.

    Queries [batch, heads, tokens, size] are rows [batch, key heads, group * tokens, size], and so are results. A work
    tile is up to `most` of them; there are `tiles` for each key head. Row r is token r % `tokens`, at a place that many
    after `first`; a `first` for which there is no room is reported. `chunk` registers of keys are processed together;
    they are transposed if a tile has more than `rows`.

    Unless `causal`, a row sees keys of all tokens; with `ends` only those before the end of its batch, and with a
    `window` only so many. `cap` limits scores. With a `bias`, its row for batch, head and token is that many times
    `bias_batch`, `bias_head` and `bias_token` elements away. With `sinks` each head has a score without a value. With
    `blocks` of keys, `seen` has a byte for each layout, block of rows and block of columns. With `beams`, `origin` has
    the beam that each key before the first comes from; one that does not exist is reported as well.
    """

    rows: int
    most: int
    chunk: int
    size: int
    value: int
    causal: bool = True
    ends: bool = False
    window: int = 0
    cap: float = 0.0
    bias: bool = False
    sinks: bool = False
    block: int = 0
    beams: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        extra = ["ends"] if self.ends else []
        if self.bias:
            extra += ["bias", "bias_batch", "bias_head", "bias_token"]
        if self.sinks:
            extra += ["sinks"]
        if self.block:
            extra += ["seen", "layouts", "block_rows", "block_columns"]
        if self.beams:
            extra += ["origin", "beams", "no_beam"]
        sizes = ("tiles", "tokens", "key_heads", "group", "places", "scale")
        return ("q", "k", "v", "first", "y", "report", *sizes, *extra)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        rows = SoftmaxRows(k, self.rows, self.chunk * k.isa.f32, self.most)
        panel = k.view(k.scratch(F32, self.size * rows.chunk), F32, rows.chunk, 1) if self.most > self.rows else None
        with k.loop(end, begin) as t:
            shared, tile = t // task.i64("tiles"), t % task.i64("tiles")
            batch = shared // task.i64("key_heads")
            first = task.view("first", I64, 1)[batch].load_once()
            fits = (first >= 0) & (first <= task.i64("places") - task.i64("tokens"))
            with k.either(fits) as (found, broken):
                with found:
                    _Tile(k, task, self, rows, panel, shared, tile * self.most, first).write()
                with broken:
                    task.report(first)


class _Tile:
    """A work tile during code generation."""

    def __init__(
        self,
        k: Kernel,
        task: Task,
        how: CachedF32,
        rooms: SoftmaxRows,
        panel: View | None,
        shared: Val,
        begin: Val,
        first: Val,
    ) -> None:
        self.k, self.task, self.how, self.rooms, self.panel = k, task, how, rooms, panel
        self.lanes = k.isa.f32
        self.batch, self.key_head = shared // task.i64("key_heads"), shared % task.i64("key_heads")
        self.begin, self.first = begin, first
        count = task.i64("group") * task.i64("tokens")
        self.count = (count - begin).min(how.most)
        above = shared * count + begin
        self.queries = k.view(task.view("q", F32, how.size)[above].address, F32, how.size, 1)
        self.out = k.view(task.view("y", F32, how.value)[above].address, F32, how.value, 1)
        places = task.i64("places")
        self.keys = k.view(task.view("k", F32, how.size)[shared * places].address, F32, how.size, 1)
        self.values = k.view(task.view("v", F32, how.value)[shared * places].address, F32, how.value, 1)

    def write(self) -> None:
        k, chunk = self.k, self.rooms.chunk
        low, high = k.var(self.task.i64("places")), k.var(k.index(0))
        with k.loop(self.count, nonempty=True) as row:
            own_low, own_high = self._seen(row)
            low.set(low.get().min(own_low))
            high.set(high.get().max(own_high))
            sink = self.task.view("sinks", F32, 1)[self._head(row)].load() if self.how.sinks else None
            self.rooms.begin(row, sink)
            clear(k, self.out[row], self.how.value)
        with k.loop(high.get(), low.get() - low.get() % chunk, step=chunk) as key:
            if self.how.block:
                some = k.var(k.const(I8, 0))
                with k.loop(self.count, nonempty=True) as row:
                    some.set(some.get() | self._sees_block(row, key))
                with k.when(some.get().ne(0)):
                    self._chunk(key, high.get())
            else:
                self._chunk(key, high.get())
        with k.loop(self.count, nonempty=True) as row:
            self.rooms.divide(row, self.out[row], self.how.value)

    def _chunk(self, key: Val, high: Val) -> None:
        if self.panel is not None:
            last = self.task.i64("places") - 1
            transpose_keys(self.k, self.keys, self.panel, self.how.size, self.rooms.chunk, key, last)
        if self.how.rows == 1:
            self._rows(self.k.index(0), 1, key, high)
            return
        for row, count in self.k.pieces(self.count, self.how.rows):
            self._rows(row, count, key, high)

    def _token(self, row: Val) -> Val:
        return (self.begin + row) % self.task.i64("tokens")

    def _head(self, row: Val) -> Val:
        return self.key_head * self.task.i64("group") + (self.begin + row) // self.task.i64("tokens")

    def _seen(self, row: Val) -> tuple[Val, Val]:
        """The range of places that a row sees."""
        own, window = self.first + self._token(row), self.how.window
        end = own + 1 if self.how.causal else self.first + self.task.i64("tokens")
        if self.how.ends:
            end = end.min(self.task.view("ends", I64, 1)[self.batch].load())
        return (own - (window - 1)).max(0) if window else self.k.index(0), end

    def _sees_block(self, row: Val, key: Val) -> Val:
        """Whether a row sees the block that a key is in, as a byte."""
        task, block = self.task, self.how.block
        rows, columns = task.i64("block_rows"), task.i64("block_columns")
        seen = task.view("seen", I8, rows * columns, columns, 1)
        place = self.first + self._token(row)
        return seen[self._head(row) % task.i64("layouts"), place // block, key // block].load()

    def _rows(self, row: Val, count: int, key: Val, high: Val) -> None:
        """Compute the scores of `count` rows for a chunk of keys, and update the rows' state."""
        k, lanes = self.k, self.lanes
        if self.panel is not None:
            acc = accumulators(k, [k.zeros(F32, lanes)] * self.how.chunk, count)
            multiply_add(k, acc, [self.queries[row + i] for i in range(count)], self.panel, k.index(self.how.size))
            raws = [[x.get() for x in sums] for sums in acc]
        else:
            scores = k.view(k.scratch(F32, count * self.rooms.chunk), F32, self.rooms.chunk, 1)
            with k.loop((high - key).min(self.rooms.chunk), step=lanes, nonempty=True) as at:
                for i, x in enumerate(self._products(row, count, key + at, high)):
                    scores[i, at].store(x)
            raws = [[scores[i, j * lanes].load(lanes) for j in range(self.how.chunk)] for i in range(count)]
        corrections = []
        for i in range(count):
            low, end = self._seen(row + i)
            if self.how.block:
                end = self._sees_block(row + i, key).ne(0).select(end, k.index(0))
            corrections.append(self.rooms.add(row + i, i, self._masked(raws[i], row + i, key, low, end)))
        self._weighted(row, count, corrections, key, (high - key).min(self.rooms.chunk))

    def _masked(self, raw: Sequence[Val], row: Val, key: Val, low: Val, end: Val) -> list[Val]:
        """Finished scores, with negative infinity for keys that a row does not see."""
        k, task, lanes, how = self.k, self.task, self.lanes, self.how
        scale, found = task.f32("scale").splat(lanes), []
        for j, x in enumerate(raw):
            here = key + j * lanes
            inside = k.mask(lanes, end - here)
            y = x * scale
            if how.cap:
                y = tanh(k, y * (1 / how.cap)) * how.cap
            if how.bias:
                place = self.batch * task.i64("bias_batch") + self._head(row) * task.i64("bias_head")
                place = place + self._token(row) * task.i64("bias_token") + here
                y = y + task.view("bias", F32, 1)[place].load(lanes, inside)
            y = inside.select(y, float("-inf"))
            found.append(k.mask(lanes, low - here).select(float("-inf"), y) if how.window else y)
        return found

    def _products(self, row: Val, count: int, key: Val, high: Val) -> list[Val]:
        """The products of `count` rows of queries with a register of keys; past the last key, it is repeated."""

        def products(begin: int, size: int) -> list[Val]:
            if size == 1:
                return self._product(row, count, self._key((key + begin).min(high - 1)))
            half = size // 2
            pairs = zip(products(begin, half), products(begin + half, half), strict=True)
            return [_halves(one, other, half) for one, other in pairs]

        return products(0, self.lanes)

    def _product(self, row: Val, count: int, keys: View) -> list[Val]:
        """The products of `count` rows with a key, to be summed over lanes."""
        k, found = self.k, [self.k.zeros(F32, self.lanes)] * count
        for at in range(0, self.how.size, self.lanes):
            rest = self.how.size - at
            mask = k.mask(self.lanes, k.index(rest)) if rest < self.lanes else None
            x = keys.after(at).load(self.lanes, mask)
            found = [k.fma(self.queries[row + i, at].load(self.lanes, mask), x, total) for i, total in enumerate(found)]
        return found

    def _key(self, place: Val) -> View:
        return self.keys.after(self._moved(place) * self.how.size)[place]

    def _moved(self, place: Val) -> Val:
        """How many rows of keys further a place is in the beam that its key comes from."""
        k, task = self.k, self.task
        if not self.how.beams:
            return k.index(0)
        places, beams = task.i64("places"), task.i64("beams")
        origin = task.view("origin", I32, places, 1)[self.batch, place].load_once().cast(I64)
        before, wrong = place < self.first, (origin < 0) | (origin >= beams)
        with k.when(before & wrong):
            task.report(origin, "no_beam")
        apart = (origin - self.batch % beams) * (task.i64("key_heads") * places)
        return before.select(wrong.select(k.index(0), apart), k.index(0))

    def _weighted(self, row: Val, count: int, corrections: Sequence[Val], key: Val, keys: Val) -> None:
        """Add the values times the exponentials to the rows of results."""
        k, lanes = self.k, self.lanes
        powers = [self.rooms.powers[k.index(i)] for i in range(count)]
        for column, wide, rest in groups(k, self.how.value, max(_WIDE // count, 1)):
            places = [self.out[row + i, column] for i in range(count)]
            masks = [*[None] * (wide - 1), rest]
            acc = [
                [k.var(place.after(j * lanes).load(lanes, mask) * correction) for j, mask in enumerate(masks)]
                for place, correction in zip(places, corrections, strict=True)
            ]
            if self.how.beams:
                with k.loop(keys) as p:
                    values = self.values.after(self._moved(key + p) * self.how.value)[key + p, column]
                    for sums, own in zip(acc, powers, strict=True):
                        power = own[p].load().splat(lanes)
                        for j, (x, mask) in enumerate(zip(sums, masks, strict=True)):
                            x.set(k.fma(power, values.after(j * lanes).load(lanes, mask), x.get()))
            else:
                panel = k.view(self.values[key, column].address, F32, self.how.value, 1)
                multiply_add(k, acc, powers, panel, keys, mask=rest)
            for place, sums in zip(places, acc, strict=True):
                for j, (x, mask) in enumerate(zip(sums, masks, strict=True)):
                    place.after(j * lanes).store(x.get(), mask)


def _halves(one: Val, other: Val, step: int) -> Val:
    """The sums of pairs of lanes `step` apart, of one vector where that bit of a lane is 0, else of the other."""
    lanes = one.lanes
    low = [at if not at & step else lanes + at - step for at in range(lanes)]
    high = [at + step if not at & step else lanes + at for at in range(lanes)]
    return one.shuffle(low, other) + one.shuffle(high, other)
