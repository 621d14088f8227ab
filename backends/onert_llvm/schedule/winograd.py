"""Schedules of Winograd convolutions, and whether they are estimated to beat the direct convolution."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache, reduce
from math import inf, prod

from attrs import frozen

from onert.ir.symbolic.trace import hint, is_symbolic, maximum, minimum, where_greater
from onert.ir.value import Value
from onert_llvm.kernels.contraction.register_tile import Columns, Tile, columns
from onert_llvm.kernels.contraction.winograd.form import Form
from onert_llvm.target.isa import Isa
from onert_llvm.target.machines import Machine, machine

from .cost_model import LONG, WORTH_NO_CODE, Shape, packed_rows
from .tile_cycles import block_cycles, register_tiles

_OF_CACHE, _OF_WEIGHTS = 7 / 16, 8
"""A block's transformed tiles may take this part of the second-level cache, in which they stay while weights stream by,
or an eighth of the weights if that is more: large weights are then read for fewer blocks.
"""

_NEAR = 1 / 2
"""The part of the second-level cache that weights stay in. Larger weights are read for each block and cost more cycles
than products hide, even more if they are not prefetched. Each row of a register tile prefetches one line of the next
weights, so a block needs as many rows of register tiles as these have registers of columns.
"""

_FORMS = ((2, 1), (4, 1), (2, 2))
"""Outputs and strides of the forms, in the order of the machine's figures."""

_LEAST_SUMS = 8
"""The fewest accumulators of a tile, so that each sum needs only one: results do not depend on the tile."""

_WORTH = 0.9
"""The maximum fraction of the direct convolution's time at which Winograd is chosen: estimates are no more accurate."""

_CLOSE = 1 + 1e-9
"""The factor by which cycle counts must differ, so that rounding does not decide."""

MOST_PIECES = 4
"""Pieces of a command per thread; more if they are long."""

_AGAIN = 1 / 50
"""The fraction of the products' time that transforming a picture again for other panels may take, if threads share."""


@frozen
class Blocks(Value):
    """How tiles are cut: `block` tiles by `group` panels per work tile. If threads share `columns`, all blocks of one
    group come before the next group.
    """

    tile: Tile
    block: int
    group: int
    columns: bool = False

    def slots(self, total: int, panels: int) -> dict[str, int]:
        """The kernel's slots for this cut of `total` tiles, which may be symbolic, and `panels` panels."""
        blocks, groups = -(-total // self.block), -(-panels // self.group)
        after = {"next_block": 1, "next_group": blocks} if self.columns else {"next_block": groups, "next_group": 1}
        return {"block": self.block, "group": self.group, "blocks": blocks, "groups": groups, **after}


@frozen
class Layer(Value):
    """A convolution from `channels` to `n` channels by a form on a target; `paired`: with bfloat16 pairs."""

    form: Form
    channels: int
    n: int
    isa: Isa
    paired: bool = False

    @property
    def steps(self) -> int:
        """Terms of a sum; a pair of channels counts as one."""
        channels = self.channels * prod(self.form.parts)
        return channels // 2 if self.paired else channels

    @property
    def product(self) -> Shape:
        """A row of the direct convolution's product."""
        return Shape(1, self.n, prod(self.form.window) * self.channels // (2 if self.paired else 1))


def tiles(form: Form, images: int, out: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int, int]:
    """The number of tiles of the outputs: in total, down a picture, and across.

    Tiles of dilated windows are interleaved until their outputs, a dilation apart, form one run.
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


def fastest(
    forms: Sequence[Form],
    channels: int,
    n: int,
    isa: Isa,
    images: int,
    out: tuple[int, int],
    paired: bool = False,
    dilation: tuple[int, int] = (1, 1),
    term_fractions: tuple[float, ...] = (),
) -> Layer | None:
    """The layer by the form estimated to be fastest; None if the direct convolution is.

    The number of images and the size of the outputs may be symbolic. `term_fractions` are those of the direct
    convolution (as in `Shape`). Raises ValueError if the choice does not hold for the current lengths.
    """
    layers = tuple(Layer(form, channels, n, isa, paired) for form in possible(forms, channels, n, isa, paired))
    if not layers:
        return None
    counts = (*(tiles(layer.form, images, out, dilation)[0] for layer in layers), images * out[0] * out[1])
    costs = _costs(layers, tuple(map(hint, counts)), term_fractions)
    number = costs.index(min(costs))
    if any(map(is_symbolic, counts)) and (term_fractions or not _is_sure(layers, number, counts)):
        costs = _costs(layers, counts, term_fractions)
        first, later = costs[:number], costs[number + 1 :]
        if not all(costs[number] < other for other in first) or any(costs[number] > other for other in later):
            raise ValueError("a choice does not hold for the shape that it was made for")
    return layers[number] if number < len(layers) else None


def _costs(layers: Sequence[Layer], counts: Sequence[int], term_fractions: tuple[float, ...]) -> list[float]:
    """The fewest cycles of each layer for its number of output tiles, then those of the direct convolution for its
    number of outputs. Symbolic counts give symbolic costs, whichever tiles are best for other lengths.
    """
    costs = []
    for layer, total in zip(layers, counts, strict=False):
        of_cuts = (where_greater(cut.rows, total, inf, cut.cycles(total)) for cut in _cuts(layer))
        costs.append(reduce(minimum, of_cuts, inf))
    one, outputs = layers[0], counts[-1]
    of_terms = inf
    for each, mr in packed_rows(one.product, one.isa):
        each = term_fractions[mr - 1] * each if term_fractions else each
        of_terms = minimum(of_terms, where_greater(mr, outputs, inf, -(-outputs // mr) * each))
    return [*costs, _WORTH * of_terms]


def possible(forms: Sequence[Form], channels: int, n: int, isa: Isa, paired: bool) -> Sequence[Form]:
    """The forms if they suit a layer with these channels, else none."""
    none = isa.small or channels < isa.f32 or n < isa.f32 or (paired and channels % 2)
    return () if none else forms


@frozen
class _Bound(Value):
    """An upper bound on cycles: `start + each * count`, valid from a count of `least`."""

    start: float
    each: float
    least: int


def _is_sure(layers: Sequence[Layer], number: int, counts: Sequence[int]) -> bool:
    """Whether a choice is clearly right: its upper bound is below the lower bounds of all others.

    All bounds are linear, so a few multiplications decide for other sizes too.
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

    # Check the current sizes first: a check that fails would become a condition too.
    return holds(seen, [(each, hint(other)) for each, other in others]) and holds(counts[number], others)


@lru_cache(1024)
def _bounds(layer: Layer) -> tuple[float, tuple[_Bound, ...]]:
    """A layer's cycles: a lower bound per output tile, and upper bounds, one for each register tile."""
    least, most = inf, []
    for cut in _cuts(layer):
        least = min(least, cut.products / cut.rows + cut.each)
        start, each = cut.products * (cut.rows - 1) / cut.rows, cut.products / cut.rows + cut.each
        if cut.far:
            # If there are several blocks, each has at least half of its maximum number of rows.
            waited = max(0.0, 1 - min(cut.wide, cut.most / 2) / cut.wide)
            again = cut.far + waited * cut.waited
            start += again * ((cut.rows - 1) / cut.rows + cut.most - 1) / cut.most
            each += again / cut.rows / cut.most
        most.append(_Bound(start, each, cut.rows * cut.wide))
    return least, tuple(most)


@lru_cache(1024)
def _bounds_of_terms(layer: Layer) -> tuple[float, tuple[_Bound, ...]]:
    """The same for the direct convolution, per output."""
    rows = packed_rows(layer.product, layer.isa)
    least = min(_WORTH * each / mr for each, mr in rows)
    bounds = (_Bound(_WORTH * each * (mr - 1) / mr, _WORTH * each / mr, mr) for each, mr in rows)
    return least, tuple(bounds)


@frozen
class _Cut(Value):
    """A layer's costs with a register tile of `rows` rows by `wide` registers of `columns`.

    Cycles of the `products` of a row of tiles, and of `each` output tile besides; the rows of tiles of a block at
    `most`; cycles lost per block if weights are read again from `far`, plus `waited` if none of that is hidden.
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
        """Cycles for `total` output tiles, which may be symbolic."""
        steps = -(-total // self.rows)
        cycles = steps * self.products + total * self.each
        if not self.far:
            return cycles
        waited: float = maximum(0.0, 1 - self.rows_of_block(total) / self.wide)
        return cycles + -(-steps // self.most) * (self.far + waited * self.waited)

    def rows_of_block(self, total: int) -> int:
        """Rows of tiles per block if `total` tiles are cut into the fewest blocks."""
        steps = -(-total // self.rows)
        return -(-steps // -(-steps // self.most))


@lru_cache(1024)
def _cuts(layer: Layer) -> tuple[_Cut, ...]:
    """A layer's costs by register tile."""
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
    """The bytes of the transformed weights."""
    return 4 * prod(layer.form.weight_tile) * layer.steps * layer.n


def _transforms(form: Form, cpu: Machine) -> tuple[float, float]:
    """Cycles to transform a register of channels of a tile, and to transform a register of columns back.

    Along one axis a tile is a row of places of F(4x4, 3x3), once for each part of a window, and a row of its outputs.
    """
    if form.axis is None:
        return cpu.transforms[_FORMS.index((form.outputs, form.stride))]
    forward, back = cpu.transforms[_FORMS.index((4, 1))]
    return forward / form.points * prod(form.parts), back / 4


def _by_columns(layer: Layer, total: int) -> bool:
    """Whether threads that share `total` tiles should each read a part of the weights and the whole picture, including
    what other threads have written.
    """
    (high, wide), (down, across) = layer.form.tile, layer.form.strides
    pixels = total * high * wide
    return 4 * pixels * (down * across * layer.channels + layer.n) * machine(layer.isa).foreign < _weights(layer)


def _candidates(layer: Layer, total: int) -> Iterator[tuple[float, Tile, int]]:
    """Register tiles: the estimated cycles of the layer, the tile, and the output tiles of a block."""
    for cut in _cuts(layer):
        if cut.rows <= total:
            yield cut.cycles(total), Tile(cut.rows, cut.columns), cut.rows_of_block(total) * cut.rows


def blocks(layer: Layer, total: int, threads: int, known: Collection[Tile] = ()) -> Blocks:
    """The cut of a layer of `total` tiles, which may be symbolic: any cut gives the same results.

    Prefers a tile in `known` (its code already exists) if the estimated slowdown is small.
    """
    seen = hint(total)
    choices = sorted(_candidates(layer, seen), key=lambda choice: choice[0])
    near = [(tile, block) for cycles, tile, block in choices if cycles <= choices[0][0] * (1 + WORTH_NO_CODE)]
    tile, block = next((choice for choice in near if choice[0] in known), near[0])
    if not total >= tile.mr:
        raise ValueError("a schedule does not fit the shape that it was chosen for")
    steps, panels = -(-seen // tile.mr), -(-layer.n // (tile.columns.widest * layer.isa.f32))
    count = -(-seen // block)
    stays = _weights(layer) <= _NEAR * machine(layer.isa).second_cache
    many = seen * layer.form.places * layer.steps * layer.n // LONG
    if threads > 1 and stays:  # as little memory per piece as possible, so that there may be more pieces
        count = max(count, min(many, steps // max(2, tile.columns.widest)))
        block = -(-steps // count) * tile.mr
        count = -(-seen // block)
    if threads > 1 and not stays and panels >= threads and _by_columns(layer, seen):
        groups = min(panels, max(threads, min(many, MOST_PIECES * threads) // count))
        return Blocks(tile, block, -(-panels // groups), columns=True)
    if count % threads:
        # Each thread takes equally many blocks if there are enough tiles, else equally many columns.
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
