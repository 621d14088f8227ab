"""Schedules of Winograd convolutions, and whether they are estimated to be faster than the windows term by term."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import inf

from attrs import frozen

from onert.ir.symbolic.trace import decided, hint
from onert.ir.value import Value
from onert_llvm.kernels.contraction.register_tile import Columns, Tile, columns
from onert_llvm.kernels.contraction.winograd.form import WINDOW, Form
from onert_llvm.target.isa import Isa

from .cost_model import WORTH_NO_CODE, Shape, block_cycles, packed_cycles, register_tiles

_BLOCK, _OF_WEIGHTS = 448 * 1024, 8
"""Bytes of what is transformed for a block of tiles: with the weights that go by it stays in a second-level cache. It
may be an eighth of the weights if these are so many that it takes longer to read them again for each block.
"""

_FORWARD, _BACK = {(2, 1): 26.0, (4, 1): 100.0, (2, 2): 65.0}, {(2, 1): 34.0, (4, 1): 120.0, (2, 2): 70.0}
"""Cycles to transform a register of channels of a tile, and to transform back one of columns, by the form."""

_FAR_BYTES, _NEAR = 32.0, 512 * 1024
"""How many bytes of weights a cycle is lost for, beside what hides behind products, where more than so many are read
for each block: they do not stay in a second-level cache.
"""

_WAITED_BYTES = 16.0
"""The same for those that are not fetched ahead. One line of the next weights is with each row of these, so a block
needs as many rows of register tiles as these have registers of columns.
"""

_LEAST_SUMS = 8
"""Accumulators of a tile at least, so that each sum is added up in one: results do not depend on the tile."""

_WORTH = 0.9
"""What part of the time of the windows' terms it may take to be chosen: estimates are no closer."""

MOST_PIECES = 4
"""Pieces of a command for each thread, each of which has memory of its own."""


@frozen
class Blocks(Value):
    """How tiles are cut: `block` tiles in a work tile by `group` of the panels."""

    tile: Tile
    block: int
    group: int


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
        return self.channels // 2 if self.paired else self.channels


def tiles(form: Form, images: int, out: tuple[int, int]) -> tuple[int, int, int]:
    """How many tiles outputs make: in all, down a picture, and across."""
    down, across = (-(-size // form.outputs) for size in out)
    return images * down * across, down, across


def chosen(
    forms: Sequence[Form],
    channels: int,
    n: int,
    isa: Isa,
    images: int,
    out: tuple[int, int],
    paired: bool = False,
) -> Layer | None:
    """The layer by the form that is estimated to be the fastest; None if the windows term by term are.

    The number of images and the size of the outputs may be symbolic.
    """
    if isa.small or channels < isa.f32 or n < isa.f32 or (paired and channels % 2):
        return None
    layers = tuple(Layer(form, channels, n, isa, paired) for form in forms)
    number: int = decided(_Choice(layers), images, *out)
    return layers[number] if number < len(layers) else None


@frozen
class _Choice(Value):
    """Which of some layers takes the fewest cycles, the number of all if the windows term by term do."""

    layers: tuple[Layer, ...]

    def __call__(self, images: int, height: int, width: int) -> int:
        costs = []
        for layer in self.layers:
            total, _, _ = tiles(layer.form, images, (height, width))
            costs.append(min((cycles for cycles, *_ in _candidates(layer, total)), default=inf))
        one = self.layers[0]
        terms = Shape(images * height * width, one.n, WINDOW**2 * one.steps)
        costs.append(_WORTH * packed_cycles(terms, one.isa))
        return costs.index(min(costs))


def _candidates(layer: Layer, total: int) -> Iterator[tuple[float, Tile, int]]:
    """Register tiles: the estimated cycles of the layer, and tiles of outputs in a block."""
    form, isa, channels, n = layer.form, layer.isa, layer.channels, layer.n
    weights = 4 * form.across**2 * layer.steps * n
    room = max(_BLOCK, weights // _OF_WEIGHTS)
    kind = form.outputs, form.stride
    each = _FORWARD[kind] * -(-channels // isa.f32) + _BACK[kind] * -(-n // isa.f32)
    for mr, wide in register_tiles(isa, False):
        if mr > total or mr * wide < _LEAST_SUMS:
            continue
        width, steps = wide * isa.f32, -(-total // mr)
        cut = Columns(wide, padded=True) if isa.free_masks else columns(n, wide, isa)
        full, rest = divmod(n, width)
        last = 0 if not rest else wide if cut.padded else cut.tail
        across = full * block_cycles(mr, wide, layer.steps) + (block_cycles(mr, last, layer.steps) if last else 0.0)
        most = max(1, room // (4 * form.places * (layer.steps + width)) // mr)
        count = -(-steps // most)
        waited = max(0.0, 1 - -(-steps // count) / wide)
        far = count * weights * (1 / _FAR_BYTES + waited / _WAITED_BYTES) if weights > _NEAR else 0.0
        yield form.places * steps * across + total * each + far, Tile(mr, cut), -(-steps // count) * mr


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
    if count % threads:
        # Each thread takes as many blocks where there are tiles enough for that, else as many columns.
        count = min(-(-count // threads) * threads, steps)
        each = -(-steps // count)
        block = each * tile.mr
    groups = 1 if -(-seen // block) % threads == 0 else min(panels, threads)
    return Blocks(tile, block, -(-panels // groups))
