"""Register tiles: how a matrix of results is cut into work tiles, row blocks and panels of columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import I8, Kernel, Val, View
from onert_llvm.target import Isa


@frozen
class Columns:
    """Panels of `vectors` registers, then a last panel of `tail` registers (0: there is none).

    `masked` says that the columns end inside the last register of the tail. `vectors` is 0 where the tail is all there
    is.
    """

    vectors: int
    tail: int = 0
    masked: bool = False

    @property
    def widest(self) -> int:
        """Registers of a panel as it is packed; the tail is packed to its own width."""
        return self.vectors or self.tail


@frozen
class Tile:
    """`mr` rows by a panel of columns.

    With few rows, `split` sums over k are kept apart to hide the latency of adding. `ahead` lines of the next panel are
    fetched into the cache at every step along k, so that all of it is there when it is needed; with `stream`, where a
    panel is read but once, lines of the same panel some way on.
    """

    mr: int
    columns: Columns
    split: int = 1
    ahead: int = 0
    stream: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        """What fetching ahead adds to a task: where the packed operand of the next product begins."""
        return ("ahead",) if self.ahead and not self.stream else ()


def columns(n: int, widest: int, isa: Isa) -> Columns:
    """The cut of `n` columns into panels of at most `widest` registers."""
    lanes = isa.f32
    full, rest = divmod(n, widest * lanes)
    return Columns(widest if full else 0, -(-rest // lanes), rest % lanes != 0)


_LINE = 64
"""Bytes of a cache's line."""

_STREAM = 4096
"""How many bytes before they are needed lines are fetched where a panel is read once."""

SLOTS = ("m", "n", "mc", "panels", "panel_bytes")
"""What the cut needs of a task:

rows, columns, rows in a work tile, panels, and bytes from one packed panel to the next.
"""


@frozen(eq=False)
class Panel:
    """A panel whose code is being written: its number, registers, first column, packed operand, columns, and the mask
    of its last register where not all lanes are columns.
    """

    number: Val
    vectors: int
    column: Val
    address: Val
    width: Val | int
    mask: Val | None


@frozen(eq=False)
class Block:
    """One tile whose code is being written: its rows, and the panel of its columns.

    Rows beyond the last are the last row again; what they give is stored to spare memory. `inside` says which rows are
    none of these, None where there are none. `ahead` is where the next panel's lines are, by step and number.
    """

    k: Kernel
    rows: tuple[Val, ...]
    inside: tuple[Val | None, ...]
    columns: Panel
    spare: View
    ahead: View | None = None
    lines: int = 0

    @property
    def vectors(self) -> int:
        """Registers of columns."""
        return self.columns.vectors

    @property
    def column(self) -> Val:
        """The first column."""
        return self.columns.column

    @property
    def mask(self) -> Val | None:
        """The mask of the last register, None where all of its lanes are columns."""
        return self.columns.mask

    @property
    def panel(self) -> Val:
        """Where the packed operand of these columns begins."""
        return self.columns.address

    @property
    def width(self) -> Val | int:
        """The panel's number of columns, which for a tail need not fill its registers."""
        return self.columns.width

    def fetch(self, step: Val) -> None:
        """Ask for the lines of the next panel that are this step's."""
        if self.ahead is not None:
            for line in range(self.lines):
                self.k.prefetch(self.ahead[step, line])

    def own(self, vector: int) -> Val | None:
        """The mask of one of the tile's registers, None where all of its lanes are columns."""
        return self.mask if vector == self.vectors - 1 else None

    def at(self, vector: int) -> Val:
        """The first column of one of the tile's registers."""
        return self.column + vector * self.k.isa.f32

    def place(self, matrix: View, row: int) -> View:
        """Where row number `row` of the tile begins in a matrix of results: at the tile's first column."""
        here, inside = matrix[self.rows[row], self.column], self.inside[row]
        chosen = here.address if inside is None else inside.select(here.address, self.spare.address)
        return View(self.k.b, chosen.v, matrix.element, (1,))


def each_panel(k: Kernel, task: Task, tile: Tile, number: Val, body: Callable[[Panel], None]) -> None:
    """Write `body` for a panel of that number: once, or once for a full one and once for the tail."""

    def write(vectors: int, masked: bool) -> None:
        column = number * (tile.columns.widest * k.isa.f32)
        address = task.view("b", I8, task.i64("panel_bytes"))[number].address
        width = task.i64("n") - column if masked else vectors * k.isa.f32
        mask = k.mask(k.isa.f32, width - (vectors - 1) * k.isa.f32) if isinstance(width, Val) else None
        body(Panel(number, vectors, column, address, width, mask))

    main, tail, masked = tile.columns.vectors, tile.columns.tail, tile.columns.masked
    if main and tail:
        with k.either((number + 1).eq(task.i64("panels"))) as (then, otherwise):
            with then:
                write(tail, masked)
            with otherwise:
                write(main, False)
    else:
        write(main or tail, masked and not main)


def each_block(
    k: Kernel, task: Task, begin: Val, end: Val, tile: Tile, body: Callable[[Block], None], again: bool = False
) -> None:
    """Write the loops around `body`: work tile t is the group of `mc` rows t // panels by the panel t % panels.

    With `again` the last tile takes rows of the one before, or of another work tile, once more: both store the same
    numbers, there are at least as many rows as a tile has, and results do not lie where operands do.
    """
    panels = task.i64("panels")
    spare = k.view(k.scratch(I8, tile.columns.widest * k.isa.vector_bytes), I8, 1)
    with k.loop(end, begin) as t:
        first = (t // panels) * task.i64("mc")
        last = (first + task.i64("mc")).min(task.i64("m"))
        each_panel(k, task, tile, t % panels, partial(_row_blocks, k, task, tile, (first, last), spare, again, body))


def _row_blocks(
    k: Kernel,
    task: Task,
    tile: Tile,
    span: tuple[Val, Val],
    spare: View,
    again: bool,
    body: Callable[[Block], None],
    panel: Panel,
) -> None:
    first, last = span
    following = _following(k, task, panel) if tile.ahead and not tile.stream else None
    with k.loop(last, first, step=tile.mr, nonempty=True) as group:
        m = group.min(last - tile.mr) if again else group
        rows: list[Val] = [m]
        inside: list[Val | None] = [None]
        for i in range(1, tile.mr):
            here = None if again else m + i < last
            inside.append(here)
            rows.append(m + i if here is None else here.select(m + i, rows[-1]))
        ahead = None if following is None else _ahead(k, task, tile, group - first, following, spare)
        if tile.stream:
            ahead = k.view(k.view(panel.address, I8, 1)[_STREAM].address, I8, _LINE * panel.vectors, _LINE)
        body(Block(k, tuple(rows), tuple(inside), panel, spare, ahead, tile.ahead))


def _ahead(k: Kernel, task: Task, tile: Tile, done: Val, following: Val, spare: View) -> View:
    """The lines of the next panel, by step and number, for the block after `done` rows; one line of no use at the end.

    Each block has as many steps as a register's column has lines in the panel.
    """
    size = task.i64("panel_bytes")
    offset = done * (size // (tile.mr * tile.columns.widest)) * tile.ahead
    some = offset < size
    place = some.select(k.view(following, I8, 1)[offset].address, spare.address)
    line = some.select(k.index(_LINE), k.index(0))
    return k.view(place, I8, line * tile.ahead, line)


def _following(k: Kernel, task: Task, panel: Panel) -> Val:
    """Where the next panel begins: that of the next product behind the last."""
    beside = k.view(panel.address, I8, 1)[task.i64("panel_bytes")].address
    return (panel.number + 1 < task.i64("panels")).select(beside, task.ptr("ahead"))
