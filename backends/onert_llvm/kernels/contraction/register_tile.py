"""Register tiles: how a matrix of results is cut into work tiles, row blocks and panels of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from attrs import frozen

from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, Kernel, Val, View
from onert_llvm.target.isa import Isa


@contextmanager
def spill_loop(k: Kernel, rows: Sequence[Sequence[Val]]) -> Iterator[tuple[Val, list[Val]]]:
    """Loop over rows of values of equal types, stored in scratch memory: yields the row number and its values."""
    columns = []
    for column in zip(*rows, strict=True):
        element, lanes = column[0].type.element, column[0].lanes
        room = k.view(k.scratch(element, len(rows) * lanes), element, lanes)
        for i, value in enumerate(column):
            room[i].store(value)
        columns.append((room, lanes))
    with k.loop(len(rows)) as row:
        yield row, [room[row].load(lanes) for room, lanes in columns]


@frozen
class Columns(Value):
    """Panels of `vectors` registers, then a last panel of `tail` registers (0: none).

    `masked`: the columns end inside the last register of the tail. `vectors` is 0 if there is only a tail. `padded`:
    there is no tail; the last panel is computed like the others and masked when stored, so the same code serves any
    number of columns. `open`: only the run knows the number of columns, so there is code for a last panel of any width.
    """

    vectors: int
    tail: int = 0
    masked: bool = False
    padded: bool = False
    open: bool = False

    @property
    def widest(self) -> int:
        """The registers of a packed panel; the tail is packed to its own width."""
        return self.vectors or self.tail


@frozen
class Tile(Value):
    """A register tile: `mr` rows by a panel of columns.

    With few rows, the sum over k is split into `split` partial sums to hide the latency of additions. At every step
    along k, `ahead` lines of the next panel are prefetched, so that it is in the cache when needed; with `stream`, for
    panels that are read once, lines of the same panel that many bytes ahead.
    """

    mr: int
    columns: Columns
    split: int = 1
    ahead: int = 0
    stream: int = 0

    @property
    def slots(self) -> tuple[str, ...]:
        """The slot that prefetching adds to a task: the address of the next product's packed operand."""
        return ("ahead",) if self.ahead and not self.stream else ()


def columns(n: int, widest: int, isa: Isa) -> Columns:
    """The cut of `n` columns into panels of at most `widest` registers."""
    lanes = isa.f32
    if is_symbolic(n):
        return Columns(widest, widest, masked=True, open=True)
    full, rest = divmod(n, widest * lanes)
    return Columns(widest if full else 0, -(-rest // lanes), rest % lanes != 0)


LINE = 64
"""Bytes per cache line."""

SLOTS = ("m", "n", "mc", "panels", "panel_bytes")
"""The slots that the cut reads: rows, columns, rows per work tile, panels, and bytes from one packed panel to the next.
"""


@frozen(eq=False)
class Panel:
    """A panel during code generation: its number, registers, first column, packed operand and number of columns.

    `masks` has one for each register that may be partial, else None; `last` is the first column of the last register
    that has columns, None if all have.
    """

    number: Val
    vectors: int
    column: Val
    address: Val
    width: Val | int
    masks: tuple[Val | None, ...]
    last: Val | None = None


@frozen(eq=False)
class Rows:
    """Some rows of results during code generation: `count` of them starting at `first`, `apart` from one another."""

    k: Kernel
    first: Val
    count: int
    apart: int

    def row(self, number: Val | int) -> Val:
        """One of the rows."""
        return self.first + number * self.apart

    def rows(self, matrix: View) -> list[View]:
        """Views of a matrix at the rows."""
        found = [matrix[self.first]]
        for _ in range(self.count - 1):
            found.append(found[-1].after(matrix.strides[0] * self.apart))
        return found


@frozen(eq=False)
class Block(Rows):
    """A tile during code generation: its rows, and the panel of its columns.

    `ahead` addresses the next panel's lines by step and number.
    """

    columns: Panel
    ahead: View | None = None
    lines: int = 0

    @property
    def vectors(self) -> int:
        """Registers of columns."""
        return self.columns.vectors

    @property
    def column(self) -> Val:
        """The first column of the tile."""
        return self.columns.column

    @property
    def masks(self) -> tuple[Val | None, ...]:
        """The masks of the registers, None for full ones."""
        return self.columns.masks

    @property
    def panel(self) -> Val:
        """The address of these columns' packed operand."""
        return self.columns.address

    @property
    def width(self) -> Val | int:
        """The panel's number of columns; in a tail it may be less than its lanes."""
        return self.columns.width

    def prefetch(self, step: Val) -> None:
        """Prefetch this step's lines of the next panel."""
        if self.ahead is not None:
            for line in range(self.lines):
                self.k.prefetch(self.ahead[step, line])

    def prefetcher(self, tap: Val | None, steps: Val | None) -> Callable[[Val], None]:
        """The same for steps counted from zero in each tap, which has `steps` of them."""
        if tap is None or steps is None or self.ahead is None:
            return self.prefetch
        done = tap * steps
        return lambda step: self.prefetch(done + step)

    def among(self, first: int, count: int, room: int) -> Val | None:
        """The mask of bytes in `room` registers, the first `count` of which hold the tile's registers from `first` on;
        None if all are columns. Only for tiles of at most seven registers: lanes are counted in bytes.
        """
        lanes = self.k.isa.f32
        if count == room and all(mask is None for mask in self.masks[first : first + count]):
            return None
        width = self.width if isinstance(self.width, Val) else self.k.index(self.width)
        left = (width - first * lanes).cast(I8).splat(room * lanes)
        return self.k.iota(I8, room * lanes) < left

    def at(self, vector: int) -> Val:
        """The first column of one of the tile's registers; if it has none, that of the last register that has."""
        column, last = self.column + vector * self.k.isa.f32, self.columns.last
        return column if last is None or vector == 0 else column.min(last)

    def results(self, more: Sequence[Sequence[Val]] = ()) -> list[Row]:
        """The tile's rows of results, each with `more` values besides those of its columns."""
        found: list[Row] = []
        for i in range(self.count):
            found.append(Row(self, self.row(i), more[i] if more else (), found[-1] if found else None))
        return found

    def finish(
        self, values: Sequence[Sequence[Val]], column: Column, little: bool, more: Sequence[Sequence[Val]] = ()
    ) -> None:
        """Store the results of each row, one register of columns after the other.

        If the epilogue is `little`, it is unrolled over the rows, otherwise it is emitted once in a loop. `more` are
        further values of each row.
        """
        if little or self.count == 1:
            writes = [column(j) for j in range(self.vectors)]
            for row, own in zip(self.results(more), values, strict=True):
                for write, value in zip(writes, own, strict=True):
                    write(row, value)
            return
        writes = [column(j) for j in range(self.vectors)]
        beside = more or [()] * self.count
        with spill_loop(self.k, [(*own, *extra) for own, extra in zip(values, beside, strict=True)]) as (i, found):
            row = Row(self, self.row(i), found[self.vectors :])
            for write, value in zip(writes, found, strict=False):
                write(row, value)


class Row:
    """A row of results on its way to memory: its number, and its values besides those of its columns.

    Its address in a matrix is derived from that of the row before, if there is one.
    """

    def __init__(self, block: Block, number: Val, more: Sequence[Val], before: Row | None = None) -> None:
        self.block = block
        self.number = number
        self.more = more
        self._before = before
        self._places: dict[View, View] = {}

    def place(self, matrix: View, vector: int) -> View:
        """This row of a matrix at one of the tile's registers of columns."""
        return self._place(matrix).after(vector * self.block.k.isa.f32)

    def _place(self, matrix: View) -> View:
        found = self._places.get(matrix)
        if found is None:
            if self._before is None:
                address = matrix[self.number, self.block.column].address
                found = self.block.k.view(address, matrix.element, 1)
            else:
                found = self._before._place(matrix).after(matrix.strides[0] * self.block.apart)
            self._places[matrix] = found
        return found


Body = Callable[[Block], None]
"""Emits a tile."""

Column = Callable[[int], Callable[[Row, Val], None]]
"""Returns, for a register of a tile's columns, the emitter for its value in a row."""


def each_panel(k: Kernel, task: Task, tile: Tile, number: Val, body: Callable[[Panel], None]) -> None:
    """Emit `body` for panel `number`: once, or once for a full panel and once for the tail."""
    lanes, main, tail = k.isa.f32, tile.columns.vectors, tile.columns.tail
    column = number * (tile.columns.widest * lanes)

    def write(vectors: int, masked: bool) -> None:
        address = task.view("b", I8, task.i64("panel_bytes"))[number].address
        width = task.i64("n") - column if masked else vectors * lanes
        mask = k.mask(lanes, width - (vectors - 1) * lanes) if isinstance(width, Val) else None
        body(Panel(number, vectors, column, address, width, (*(None,) * (vectors - 1), mask)))

    def narrower(vectors: int, left: Val) -> None:
        if vectors == 1:
            write(1, True)
            return
        with k.either(left > (vectors - 1) * lanes) as (then, otherwise):
            with then:
                write(vectors, True)
            with otherwise:
                narrower(vectors - 1, left)

    if tile.columns.padded:
        body(_padded(k, task, main, number, column))
    elif main and tail:
        with k.either((number + 1).eq(task.i64("panels"))) as (then, otherwise):
            with then:
                if tile.columns.open:
                    narrower(tail, task.i64("n") - column)
                else:
                    write(tail, tile.columns.masked)
            with otherwise:
                write(main, False)
    else:
        write(main or tail, tile.columns.masked and not main)


def _padded(k: Kernel, task: Task, vectors: int, number: Val, column: Val) -> Panel:
    """A panel that may be the last one."""
    lanes, n = k.isa.f32, task.i64("n")
    address = task.view("b", I8, task.i64("panel_bytes"))[number].address
    width = (n - column).min(vectors * lanes)
    count, numbers = width.cast(I32), k.iota(I32, lanes)
    masks = tuple(numbers < (count - j * lanes).splat(lanes) for j in range(vectors))
    return Panel(number, vectors, column, address, width, masks, (n - 1) // lanes * lanes)


def each_register(k: Kernel, columns: Columns, panel: Panel, body: Callable[[Val, Val | None], None]) -> None:
    """Emit a loop over the registers of a panel that have columns; `body` gets the register's number and mask."""
    lanes = k.isa.f32
    if columns.padded:
        assert isinstance(panel.width, Val)
        with k.loop((panel.width + lanes - 1) // lanes, nonempty=True) as j:
            some = (panel.width - j * lanes).cast(I32).splat(lanes)
            body(j, k.iota(I32, lanes) < some)
        return
    full = panel.vectors if panel.masks[-1] is None else panel.vectors - 1
    if full:
        with k.loop(full) as j:
            body(j, None)
    if full < panel.vectors:
        body(k.index(full), panel.masks[-1])


def each_block(
    k: Kernel,
    task: Task,
    begin: Val,
    end: Val,
    tile: Tile,
    body: Body,
    made: Callable[[Panel], Panel] | None = None,
) -> None:
    """Emit the loops around `body`: work tile t is row group t // panels (`mc` rows) by panel t % panels.

    `made` emits what is done once per work tile and returns the panel to use.

    The last tile overlaps rows of the previous one, or of another work tile. That is safe: both store the same numbers,
    there are at least as many rows as a tile has, and results do not overlap operands.
    """
    each_group(k, task, begin, end, tile, lambda t, first, last: body, made)


def each_group(
    k: Kernel,
    task: Task,
    begin: Val,
    end: Val,
    tile: Tile,
    rows: Callable[[Val, Val, Val], Body],
    made: Callable[[Panel], Panel] | None = None,
) -> None:
    """The same if work tiles prepare their rows: `rows` gets the work tile's number, its first row and the row after
    its last, and returns what emits a tile.
    """
    panels = task.i64("panels")
    with k.loop(end, begin) as t:
        first = (t // panels) * task.i64("mc")
        last = (first + task.i64("mc")).min(task.i64("m"))
        body = rows(t, first, last)

        def blocks(panel: Panel) -> None:
            _row_blocks(k, task, tile, (first, last), body, panel if made is None else made(panel))

        each_panel(k, task, tile, t % panels, blocks)


def _row_blocks(
    k: Kernel,
    task: Task,
    tile: Tile,
    span: tuple[Val, Val],
    body: Body,
    panel: Panel,
) -> None:
    first, last = span
    following = _following(k, task, panel) if tile.ahead and not tile.stream else None
    with k.loop(last, first, step=tile.mr, nonempty=True) as group:
        m = group.min(last - tile.mr)
        ahead = None if following is None else _ahead(k, task, tile, group - first, following)
        if tile.stream:
            step = 4 * k.isa.f32 * panel.vectors
            ahead = k.view(k.view(panel.address, I8, 1)[tile.stream].address, I8, step, LINE)
        body(Block(k, m, tile.mr, 1, panel, ahead, tile.ahead))


def _ahead(k: Kernel, task: Task, tile: Tile, done: Val, following: Val) -> View:
    """The next panel's lines, by step and number, for the block after `done` rows; past its end, its first line."""
    size, step = task.i64("panel_bytes"), 4 * k.isa.f32 * tile.columns.widest * tile.split
    offset = done // tile.mr * (size // step) * (LINE * tile.ahead)
    some = offset < size
    place = some.select(k.view(following, I8, 1)[offset].address, following)
    line = some.select(k.index(LINE), k.index(0))
    return k.view(place, I8, line * tile.ahead, line)


def _following(k: Kernel, task: Task, panel: Panel) -> Val:
    """The address of the next panel; after the last one, that of the next product's first panel."""
    beside = k.view(panel.address, I8, 1)[task.i64("panel_bytes")].address
    return (panel.number + 1 < task.i64("panels")).select(beside, task.ptr("ahead"))
