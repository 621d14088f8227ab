"""Schedules of Winograd convolutions, and whether they are estimated to be faster than the windows term by term."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache, reduce
from math import inf, prod

from attrs import evolve, frozen

from onert.ir.symbolic.trace import hint, is_symbolic, maximum, minimum, where_greater
from onert.ir.value import Value
from onert_llvm.kernels.contraction.register_tile import Columns, Tile, columns
from onert_llvm.kernels.contraction.winograd.form import Form
from onert_llvm.target.isa import Isa
from onert_llvm.target.machines import Machine, machine

from .cost_model import LONG, WORTH_NO_CODE, Shape, packed_rows
from .tile_cycles import block_cycles, register_tiles

_OF_CACHE, _OF_WEIGHTS = 7 / 16, 8
"""The part of the second-level cache for what is transformed for a block of tiles: with the weights that go by it stays
there. It may be an eighth of the weights if these are so many that it takes longer to read them again for each block.
"""

_NEAR = 1 / 2
"""The part of the second-level cache that weights stay in. Where more are read for each block, cycles are lost for them
beside what hides behind products; more for those that are not fetched ahead. One line of the next weights is with each
row of these, so a block needs as many rows of register tiles as these have registers of columns.
"""

_FORMS = ((2, 1), (4, 1), (2, 2))
"""Outputs and strides of the forms, in the order in which the machine's figures are listed."""

_LEAST_SUMS = 8
"""Accumulators of a tile at least, so that each sum is added up in one: results do not depend on the tile."""

_WORTH = 0.9
"""What part of the time of the windows' terms it may take to be chosen: estimates are no closer."""

_CLOSE = 1 + 1e-9
"""By how much more one number of cycles must be than another, so that it is not by rounding."""

MOST_PIECES = 4
"""Pieces of a command for each thread; more where they are long."""

_AGAIN = 1 / 50
"""The part of the products' time that transforming a picture again for other panels may take, where threads share."""


@frozen
class Blocks(Value):
    """How tiles are cut: `block` tiles in a work tile by `group` of the panels; all blocks by one group before the next
    where threads share `columns`.
    """

    tile: Tile
    block: int
    group: int
    columns: bool = False

    def slots(self, total: int, panels: int) -> dict[str, int]:
        """What says so to a kernel for so many tiles, which may be symbolic, and panels."""
        blocks, groups = -(-total // self.block), -(-panels // self.group)
        after = {"next_block": 1, "next_group": blocks} if self.columns else {"next_block": groups, "next_group": 1}
        return {"block": self.block, "group": self.group, "blocks": blocks, "groups": groups, **after}


@frozen
class Layer(Value):
    """A convolution of so many `channels` to `n`, by a form on a target; `paired`: in products of bfloat16."""

    form: Form
    channels: int
    n: int
    isa: Isa
    paired: bool = False

    @property
    def steps(self) -> int:
        """Terms of a sum: pairs of channels count as one."""
        channels = self.channels * prod(self.form.parts)
        return channels // 2 if self.paired else channels

    @property
    def product(self) -> Shape:
        """A row of the product that the windows term by term are."""
        return Shape(1, self.n, prod(self.form.window) * self.channels // (2 if self.paired else 1))


def tiles(form: Form, images: int, out: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int, int]:
    """How many tiles outputs make: in all, down a picture, and across.

    Tiles of dilated windows lie side by side until their outputs, a dilation apart, make one run.
    """

    def along(size: int, each: int, rate: int) -> int:
        runs = (size - 1) // (each * rate)
        last: int = minimum(size - runs * each * rate, rate)
        return runs * rate + last

    down, across = (
        -(-size // each) if each == 1 or rate == 1 else along(size, each, rate)
        for size, each, rate in zip(out, form.tile, dilation, strict=True)
    )
    return images * down * across, down, across


def chosen(
    forms: Sequence[Form],
    channels: int,
    n: int,
    isa: Isa,
    images: int,
    out: tuple[int, int],
    paired: bool = False,
    dilation: tuple[int, int] = (1, 1),
    met: tuple[float, ...] = (),
) -> Layer | None:
    """The layer by the form that is estimated to be the fastest; None if the windows term by term are.

    The number of images and the size of the outputs may be symbolic. Windows term by term have the terms that are `met`
    (`Shape.met`).
    """
    layers = tuple(Layer(form, channels, n, isa, paired) for form in possible(forms, channels, n, isa, paired))
    if not layers:
        return None
    counts = (*(tiles(layer.form, images, out, dilation)[0] for layer in layers), images * out[0] * out[1])
    costs = _costs(layers, tuple(map(hint, counts)), met)
    number = costs.index(min(costs))
    if any(map(is_symbolic, counts)) and (met or not _is_sure(layers, number, counts)):
        costs = _costs(layers, counts, met)
        first, later = costs[:number], costs[number + 1 :]
        if not all(costs[number] < other for other in first) or any(costs[number] > other for other in later):
            raise ValueError("a choice does not suit the shape that it was made for")
    return layers[number] if number < len(layers) else None


def _costs(layers: Sequence[Layer], counts: Sequence[int], met: tuple[float, ...]) -> list[float]:
    """The fewest cycles that each layer takes for so many tiles of outputs, and the windows term by term for so many
    outputs. Of symbolic counts they are symbolic, whichever tiles are the best for other lengths.
    """
    costs = []
    for layer, total in zip(layers, counts, strict=False):
        of_cuts = (where_greater(cut.rows, total, inf, cut.cycles(total)) for cut in _cuts(layer))
        costs.append(reduce(minimum, of_cuts, inf))
    one, outputs = layers[0], counts[-1]
    of_terms = inf
    for each, mr in packed_rows(evolve(one.product, met=met), one.isa):
        of_terms = minimum(of_terms, where_greater(mr, outputs, inf, -(-outputs // mr) * each))
    return [*costs, _WORTH * of_terms]


def possible(forms: Sequence[Form], channels: int, n: int, isa: Isa, paired: bool) -> Sequence[Form]:
    """Those of some forms that a layer of so many channels can be computed by: all of them, or none."""
    none = isa.small or channels < isa.f32 or n < isa.f32 or (paired and channels % 2)
    return () if none else forms


@frozen
class _Bound(Value):
    """Cycles that something takes at most: `start + each * count` if there are at `least` so many of what it counts."""

    start: float
    each: float
    least: int


def _is_sure(layers: Sequence[Layer], number: int, counts: Sequence[int]) -> bool:
    """Whether a choice is right by far: what it takes at most is less than what all others take at least.

    Both are straight lines, so that it is known by a few multiplications for other sizes too.
    """
    found = [*map(_bounds, layers), _bounds_of_terms(layers[0])]
    seen = hint(counts[number])
    suiting = [bound for bound in found[number][1] if bound.least <= seen]
    if not suiting:
        return False
    most = min(suiting, key=lambda bound: bound.start + bound.each * seen)
    others = [(each, count) for at, ((each, _), count) in enumerate(zip(found, counts, strict=True)) if at != number]

    def holds(count: int, others: Sequence[tuple[float, int]]) -> bool:
        takes = (most.start + most.each * count) * _CLOSE
        return count >= most.least and all(takes < each * other for each, other in others)

    # Of the numbers at hand first: what does not hold would be a condition too.
    return holds(seen, [(each, hint(other)) for each, other in others]) and holds(counts[number], others)


@lru_cache(1024)
def _bounds(layer: Layer) -> tuple[float, tuple[_Bound, ...]]:
    """Of a layer's cycles: what each tile of outputs takes at least, and what all take at most, by each tile."""
    least, most = inf, []
    for cut in _cuts(layer):
        least = min(least, cut.products / cut.rows + cut.each)
        start, each = cut.products * (cut.rows - 1) / cut.rows, cut.products / cut.rows + cut.each
        if cut.far:
            # Blocks have at least half of the rows that they may have, if there are several.
            waited = max(0.0, 1 - min(cut.wide, cut.most / 2) / cut.wide)
            again = cut.far + waited * cut.waited
            start += again * ((cut.rows - 1) / cut.rows + cut.most - 1) / cut.most
            each += again / cut.rows / cut.most
        most.append(_Bound(start, each, cut.rows * cut.wide))
    return least, tuple(most)


@lru_cache(1024)
def _bounds_of_terms(layer: Layer) -> tuple[float, tuple[_Bound, ...]]:
    """The same of the sums of all terms, for each output."""
    rows = packed_rows(layer.product, layer.isa)
    least = min(_WORTH * each / mr for each, mr in rows)
    bounds = (_Bound(_WORTH * each * (mr - 1) / mr, _WORTH * each / mr, mr) for each, mr in rows)
    return least, tuple(bounds)


@frozen
class _Cut(Value):
    """What a layer takes by a register tile of so many `rows` by `wide` registers of `columns`.

    Cycles of the `products` for a row of tiles, and of `each` tile of outputs beside them; rows of tiles of a block at
    `most`; cycles lost for each block if weights are read again from `far`, and more if all of them are `waited` for.
    """

    rows: int
    wide: int
    columns: Columns
    products: float
    each: float
    most: int
    far: float
    waited: float

    def cycles(self, total: int) -> float:
        """Of so many tiles of outputs, which may be symbolic."""
        steps = -(-total // self.rows)
        cycles = steps * self.products + total * self.each
        if not self.far:
            return cycles
        waited: float = maximum(0.0, 1 - self.rows_of_block(total) / self.wide)
        return cycles + -(-steps // self.most) * (self.far + waited * self.waited)

    def rows_of_block(self, total: int) -> int:
        """Rows of tiles in each of the fewest blocks that so many tiles take."""
        steps = -(-total // self.rows)
        return -(-steps // -(-steps // self.most))


@lru_cache(1024)
def _cuts(layer: Layer) -> tuple[_Cut, ...]:
    """What a layer takes by each register tile."""
    form, isa, channels, n = layer.form, layer.isa, layer.channels, layer.n
    weights = _weights(layer)
    cpu = machine(isa)
    forward, back = _transforms(form, cpu)
    room = max(int(_OF_CACHE * cpu.second_cache), weights // _OF_WEIGHTS)
    each = forward * -(-channels // isa.f32) + back * -(-n // isa.f32)
    far = weights / cpu.far_bytes if weights > _NEAR * cpu.second_cache else 0.0
    found = []
    for mr, wide in register_tiles(isa, False):
        if mr * wide < _LEAST_SUMS:
            continue
        width = wide * isa.f32
        cut = Columns(wide, padded=True) if isa.free_masks else columns(n, wide, isa)
        full, rest = divmod(n, width)
        last = 0 if not rest else wide if cut.padded else cut.tail
        tail = block_cycles(mr, last, layer.steps, cpu) if last else 0.0
        across = full * block_cycles(mr, wide, layer.steps, cpu) + tail
        most = max(1, room // (4 * form.places * (layer.steps + width)) // mr)
        found.append(_Cut(mr, wide, cut, form.places * across, each, most, far, far / cpu.unfetched))
    return tuple(found)


def _weights(layer: Layer) -> int:
    """Bytes of the transformed weights."""
    return 4 * prod(layer.form.stored) * layer.steps * layer.n


def _transforms(form: Form, cpu: Machine) -> tuple[float, float]:
    """Cycles to transform a register of channels of a tile, and to transform back one of columns.

    Along one axis a tile is a row of places of F(4x4, 3x3), once for each part of a window, and a row of its outputs.
    """
    if form.axis is None:
        number = _FORMS.index((form.outputs, form.stride))
        return cpu.forward[number], cpu.back[number]
    number = _FORMS.index((4, 1))
    return cpu.forward[number] / form.points * prod(form.parts), cpu.back[number] / 4


def _by_columns(layer: Layer, total: int) -> bool:
    """Whether threads that share so many tiles had rather each read a part of the weights, and all of the picture, of
    which other threads have written the rest.
    """
    (high, wide), (down, across) = layer.form.tile, layer.form.strides
    pixels = total * high * wide
    return 4 * pixels * (down * across * layer.channels + layer.n) * machine(layer.isa).foreign < _weights(layer)


def _candidates(layer: Layer, total: int) -> Iterator[tuple[float, Tile, int]]:
    """Register tiles: the estimated cycles of the layer, and tiles of outputs in a block."""
    for cut in _cuts(layer):
        if cut.rows <= total:
            yield cut.cycles(total), Tile(cut.rows, cut.columns), cut.rows_of_block(total) * cut.rows


def blocks(layer: Layer, total: int, threads: int, known: Collection[Tile] = ()) -> Blocks:
    """The cut of a layer of so many tiles, which may be symbolic: any gives the same results.

    A tile that is `known`, so that there is code for it, is taken where it is estimated to be slower by little at most.
    """
    seen = hint(total)
    choices = sorted(_candidates(layer, seen), key=lambda choice: choice[0])
    near = [(tile, block) for cycles, tile, block in choices if cycles <= choices[0][0] * (1 + WORTH_NO_CODE)]
    tile, block = next((choice for choice in near if choice[0] in known), near[0])
    if not total >= tile.mr:
        raise ValueError("a schedule does not suit the shape that it was made for")
    steps, panels = -(-seen // tile.mr), -(-layer.n // (tile.columns.widest * layer.isa.f32))
    count = -(-seen // block)
    stays = _weights(layer) <= _NEAR * machine(layer.isa).second_cache
    many = seen * layer.form.places * layer.steps * layer.n // LONG
    if threads > 1 and stays:  # as little memory for each piece as may be, so that there may be more
        count = max(count, min(many, steps // max(2, tile.columns.widest)))
        block = -(-steps // count) * tile.mr
        count = -(-seen // block)
    if threads > 1 and not stays and panels >= threads and _by_columns(layer, seen):
        groups = min(panels, max(threads, min(many, MOST_PIECES * threads) // count))
        return Blocks(tile, block, -(-panels // groups), columns=True)
    if count % threads:
        # Each thread takes as many blocks where there are tiles enough for that, else as many columns.
        count = min(-(-count // threads) * threads, steps)
        each = -(-steps // count)
        block = each * tile.mr
    count = -(-seen // block)
    groups = 1 if count % threads == 0 else min(panels, threads)
    if threads > 1 and not stays:
        forward, _ = _transforms(layer.form, machine(layer.isa))
        again = int(_AGAIN * layer.form.places * layer.n / forward)
        groups = max(groups, min(panels, min(many, MOST_PIECES * threads) // count, 1 + again))
    return Blocks(tile, block, -(-panels // groups))
