"""Linear attention: a matrix for each head, which every token changes and reads."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, I64, Kernel, Val, Var, View


@frozen
class AttendLinearly(Value):
    """Some columns of the state of a head, over all tokens of a sequence: a work tile.

    The state of a head has `n` rows of `width`, of which a tile has `registers` at a time; there are `parts` of these.
    `group` queries read a state. `decay` is the number of factors for each head, 0, 1 or `n`. With `delta`, what the
    state has for a key is subtracted from the value, and the difference is multiplied by a rate, which heads may
    share. `bounds` is the size in bytes of the integers that say where sequences begin, or 0: tokens are batches then.
    A sequence that is not between its neighbours is written to `report`, and skipped.

    A column of the state depends on no other column. The pass that adds a token's product to the state also sums the
    products of its query and, for the next token's difference, of the next key, so that each row is read and written
    once for a token. Between the first token and the last, columns are on the stack, which a cache holds.
    """

    n: int
    width: int
    registers: int
    group: int = 1
    decay: int = 0
    delta: bool = False
    shared_rate: bool = False
    bounds: int = 0

    @property
    def together(self) -> int:
        """The tokens of a pass: reading and writing takes as long as two products for each."""
        return 1 if self.delta else 2

    @property
    def slots(self) -> tuple[str, ...]:
        gates = (*(("decay",) if self.decay else ()), *(("rate",) if self.delta else ()))
        packed = ("bounds", "report", "sequences") if self.bounds else ()
        sizes = ("tokens", "heads", "q_heads", "q_share", "k_heads", "k_share", "scale")
        return ("q", "k", "v", *gates, "state", "y", "last", *packed, *sizes)

    def parts(self, lanes: int) -> int:
        """The number of tiles for each head."""
        return -(-self.width // (self.registers * lanes))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        room = k.scratch(F32, self.n * self.registers * k.isa.f32)
        with k.loop(end, begin) as t:
            parts = self.parts(k.isa.f32)
            row, column = t // parts, t % parts * (self.registers * k.isa.f32)
            item = row // task.i64("heads")
            if self.bounds:
                first, last, good = self._sequence(task, item)
                with k.either(good) as (found, broken):
                    with found:
                        _Tile(k, task, self, row, column, room, first).write(last - first)
                    with broken:
                        task.report(item)
            else:
                count = task.i64("tokens")
                _Tile(k, task, self, row, column, room, item * count).write(count)

    def _sequence(self, task: Task, item: Val) -> tuple[Val, Val, Val]:
        """Where a sequence begins and ends, and whether it is between its neighbours."""
        bounds, tokens = task.view("bounds", I64 if self.bounds == 8 else I32, 1), task.i64("tokens")
        first, last = (bounds[item + at].load_once().cast(I64) for at in (0, 1))
        good = (first >= 0) & (last >= first) & (last <= tokens)
        good = good & (item > 0).select(item.eq(item), first.eq(0))
        final = (item + 1).eq(task.i64("sequences"))
        return first, last, good & final.select(last.eq(tokens), item.eq(item))


class _Tile:
    """A work tile during code generation: columns of a head's state."""

    def __init__(
        self, k: Kernel, task: Task, how: AttendLinearly, row: Val, column: Val, room: Val, first: Val
    ) -> None:
        self.k, self.task, self.how, self.first = k, task, how, first
        self.lanes = k.isa.f32
        self.head = row % task.i64("heads")
        self.column = column
        wide = how.registers * self.lanes
        self.room = k.view(room, F32, wide, 1)
        states = (task.view(name, F32, how.n * how.width, how.width, 1)[row] for name in ("state", "last"))
        self.past, self.last = (k.view(x[0, column].address, F32, how.width, 1) for x in states)
        masked = how.width % wide
        left = how.width - column if masked else None
        self.masks = [None if left is None else k.mask(self.lanes, left - j * self.lanes) for j in range(how.registers)]
        self.places = [j * self.lanes for j in range(how.registers)]
        self.rows = 2 if how.group == 1 else 1  # sums of more queries leave no registers for a second row

    def write(self, count: Val) -> None:
        k = self.k
        with k.either(count > 0) as (some, none):
            with some:
                self._tokens(count)
            with none, k.loop(self.how.n) as i:
                for at, mask in zip(self.places, self.masks, strict=True):
                    self.last[i, at].store(self.past[i, at].load(self.lanes, mask), mask)

    def _tokens(self, count: Val) -> None:
        k, how = self.k, self.how
        sums = [k.var(k.zeros(F32, self.lanes)) for _ in self.places]
        if how.delta:
            with k.loop(how.n) as i:
                key = self.key(k.index(0), i)
                for place, mask, total in zip(self.places, self.masks, sums, strict=True):
                    total.set(k.fma(key, self.past[i, place].load(self.lanes, mask), total.get()))
        if how.together == 1:
            with k.loop(count, nonempty=True) as at:
                self._pass(at, 1, count, sums)
        else:
            for first, size in k.pieces(count, how.together):
                self._pass(first, size, count, sums)

    def _pass(self, at: Val, size: int, count: Val, sums: Sequence[Var]) -> None:
        """Add the products of some tokens to the state, and sum those of their queries and of the next key."""
        k, how, wide = self.k, self.how, self.how.registers * self.lanes
        tokens = [_Token(self, at + i, sums) for i in range(size)]
        begins, ends = at.eq(0), (at + size).eq(count)
        source = k.view(begins.select(self.past.address, self.room.address), F32, self._step(begins, wide), 1)
        target = k.view(ends.select(self.last.address, self.room.address), F32, self._step(ends, wide), 1)
        following = ends.select(at, at + size)
        for total in sums:
            total.set(k.zeros(F32, self.lanes))
        whole = how.n - how.n % self.rows
        if whole:
            with k.loop(whole, step=self.rows) as i:
                for row in range(self.rows):
                    self._row_of_pass(tokens, source, target, following, i + row, sums)
        for row in range(whole, how.n):
            self._row_of_pass(tokens, source, target, following, k.index(row), sums)
        for token in tokens:
            token.store()

    def _row_of_pass(
        self, tokens: Sequence[_Token], source: View, target: View, following: Val, i: Val, sums: Sequence[Var]
    ) -> None:
        """Change a row of the state, and multiply it."""
        k = self.k
        for token in tokens:
            token.load(i)
        next_key = self.key(following, i) if self.how.delta else None
        for j, (place, mask) in enumerate(zip(self.places, self.masks, strict=True)):
            s = source[i, place].load(self.lanes, mask)
            for token in tokens:
                s = token.added_to(s, j)
            target[i, place].store(s, mask)
            if next_key is not None:
                sums[j].set(k.fma(next_key, s, sums[j].get()))

    def _step(self, outside: Val, wide: int) -> Val:
        return outside.select(self.k.index(self.how.width), wide)

    def key(self, at: Val, i: Val) -> Val:
        """An element of a key, times the factor of its row of the state if rows have factors."""
        key = self.row("k", at, i).load()
        if self.how.decay > 1:
            key = key * self.factors(at)[i].load()
        return key.splat(self.lanes)

    def factors(self, at: Val) -> View:
        size = self.how.decay
        return self.task.view("decay", F32, self.task.i64("heads") * size, size, 1)[self.first + at, self.head]

    def row(self, name: str, at: Val, i: Val, query: int = 0) -> View:
        """An element of a token's key or query."""
        n, heads, share = self.how.n, self.task.i64(f"{name}_heads"), self.task.i64(f"{name}_share")
        head = self.head // share if name == "k" or self.how.group == 1 else self.head * self.how.group + query
        return self.task.view(name, F32, heads * n, n, 1)[self.first + at, head, i]


class _Token:
    """A token of a pass: what its key is multiplied with, and the sums of its queries' products."""

    def __init__(self, tile: _Tile, at: Val, sums: Sequence[Var]) -> None:
        self.tile, self.at, k = tile, at, tile.k
        self.zero = k.zeros(F32, tile.lanes)
        self.factor = self._factor(k.index(0)) if tile.how.decay == 1 else None
        self.new = self._new(sums)
        self.totals = [[k.var(self.zero) for _ in tile.places] for _ in range(tile.how.group)]
        self.key, self.queries = self.zero, [self.zero]

    def _factor(self, i: Val) -> Val:
        return self.tile.factors(self.at)[i].load().splat(self.tile.lanes)

    def _new(self, sums: Sequence[Var]) -> list[Val]:
        """The value, or its difference from what the state has for the key."""
        tile, k, how, heads = self.tile, self.tile.k, self.tile.how, self.tile.task.i64("heads")
        at = tile.first + self.at
        row = tile.task.view("v", F32, heads * how.width, how.width, 1)[at, tile.head, tile.column]
        values = [row.after(place).load(tile.lanes, mask) for place, mask in zip(tile.places, tile.masks, strict=True)]
        if not how.delta:
            return values
        rates = tile.task.view("rate", F32, 1 if how.shared_rate else heads, 1)[at]
        rate = rates[k.index(0) if how.shared_rate else tile.head].load().splat(tile.lanes)
        found = [total.get() if self.factor is None else total.get() * self.factor for total in sums]
        return [(value - x) * rate for value, x in zip(values, found, strict=True)]

    def load(self, i: Val) -> None:
        """Load what the token multiplies with a row of the state."""
        tile, lanes = self.tile, self.tile.lanes
        if tile.how.decay > 1:
            self.factor = self._factor(i)
        self.key = tile.row("k", self.at, i).load().splat(lanes)
        self.queries = [tile.row("q", self.at, i, query).load().splat(lanes) for query in range(tile.how.group)]

    def added_to(self, s: Val, j: int) -> Val:
        """A register of the row after this token, which its queries read."""
        k = self.tile.k
        s = k.fma(self.key, self.new[j], s if self.factor is None else s * self.factor)
        for totals, query in zip(self.totals, self.queries, strict=True):
            totals[j].set(k.fma(query, s, totals[j].get()))
        return s

    def store(self) -> None:
        """Store the results of the queries."""
        tile, how = self.tile, self.tile.how
        scale = tile.task.f32("scale").splat(tile.lanes)
        heads = tile.task.i64("heads") * how.group
        y = tile.task.view("y", F32, heads * how.width, how.width, 1)[tile.first + self.at]
        for query, totals in enumerate(self.totals):
            for place, mask, total in zip(tile.places, tile.masks, totals, strict=True):
                y[tile.head * how.group + query, tile.column + place].store(total.get() * scale, mask)
