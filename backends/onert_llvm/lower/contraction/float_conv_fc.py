"""Convolutions and fully connected layers in float32."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.symbolic.trace import hint
from onert.ir.value import Value
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.kernels.contraction.contraction import Contraction
from onert_llvm.kernels.contraction.direct.conv_row_f32 import LineConvF32, Lines
from onert_llvm.kernels.contraction.epilogue import ACC, PLAIN
from onert_llvm.kernels.contraction.float_terms import ABSENT, FloatTerms
from onert_llvm.kernels.contraction.register_tile import Tile, columns
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.elementwise.op_to_expression import activated
from onert_llvm.lower.strided_copy import move, operand, side
from onert_llvm.schedule.bfloat_packing import pack_bfloat, pack_half
from onert_llvm.schedule.cost_model import Shape, Work, guard, lanes_for, product_tile, run_tile
from onert_llvm.schedule.float_packing import pack_f32, panel_bytes_f32, panels
from onert_llvm.schedule.line_tiles import LineTile, line_tile
from onert_llvm.target.isa import Isa

from .bfloat.layers import rounded_bytes, rounded_rows, rounded_windows, terms
from .conv_geometry import Plane, plane, rows_of, windows_of
from .direct import grouped, planes
from .dots import dots
from .epilogue import EpilogueTask, Windows, epilogue_task
from .partition import partition
from .winograd import layers as winograd

MOST_GROUPS = 256
"""The limit for grouped convolutions, in which each group has its own commands."""

_LONG_SUM, _TOGETHER, _ROWS_OF_PARTS = 4096, 1024, 16
"""Sums of at least so many terms are added in parts of about so many, if a layer has at least so many rows. The panels
of weights of a part stay in the second-level cache while all rows are multiplied.
"""


def why_not(op: Conv2D | FullyConnected, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None if it does."""
    x, weight = types.input(0), types.input(1)
    bias = types.inputs[2] if len(types.inputs) > 2 else None
    present = [t for t in (x, weight, bias, types.output) if t is not None]
    if any(t.dtype is not DType.FLOAT32 for t in present):
        return "only float32 is native"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    if 0 in (x.shape + weight.shape + types.output.shape):
        return "a tensor has no elements"
    if isinstance(op, Conv2D) and weight.shape[3] != x.shape[3]:
        groups = (x.shape[3] or 0) // (weight.shape[3] or 1)
        if weight.value is None or groups > MOST_GROUPS:
            return "grouped convolutions need constant weights and a moderate number of groups"
    return None


@frozen
class Product(Value):
    """How a product of `m` rows and `n` columns over `k` terms is divided for a target, and its slots.

    If `accesses` is set, it is scratch memory that holds the weights, which are not packed then.
    """

    tile: Tile
    work: Work
    m: int
    n: int
    slots: dict[str, Slot]
    isa: Isa
    accesses: tuple[Access, ...] = ()
    terms: Terms = Terms.FLOAT


def product(
    lowering: Lowering,
    m: int,
    weights: Array,
    code: Hashable = None,
    line: LineTile | None = None,
    kind: Terms = Terms.FLOAT,
    apart: int = 0,
    term_fractions: tuple[float, ...] = (),
    like: int = 0,
) -> Product:
    """The schedule for `weights[taps, k, n]` and their packed form, with the best tile for `code`, unless a `line` of
    outputs specifies one.

    Rows of floats are `apart` bytes apart, if that is known; `term_fractions` is as in `Shape`. If there are columns
    of padding, terms are added in the order that suits the `like` other columns.
    """
    taps, depth, n = weights.shape
    pack, depth = (pack_f32, depth) if kind is Terms.FLOAT else (pack_bfloat, (depth + 1) // 2)
    pack = pack_half if kind in (Terms.HALVES, Terms.WIDENED_HALVES) else pack
    apart = apart // 2 if kind.pairs else apart
    shape = Shape(m, like or n, taps * depth, row_stride=apart, term_fractions=term_fractions)
    isa = lowering.isa
    if kind is Terms.HALVES:
        tile = run_tile(m, n, isa)
    elif line is not None:
        tile, isa = line.tile, line.isa
    else:
        isa = lanes_for(shape, isa) if kind is Terms.FLOAT else isa
        tile = lowering.tile((FloatTerms, code, kind, isa.f32), shape, isa)
        if shape.n != n and not tile.columns.padded:
            tile = evolve(tile, columns=columns(n, tile.columns.widest, isa))
    b, panel_bytes = lowering.packed(weights, tile.columns, pack, isa), panel_bytes_f32(taps, depth, tile.columns, isa)
    work, slots = partition(lowering, Shape(m, n, taps * depth), tile, taps * depth * 4, b, panel_bytes, isa=isa)
    return Product(tile, work, m, n, slots, isa, terms=kind)


def loose_product(lowering: Lowering, at: int, m: int, weight: int, depth: int) -> Product:
    """The schedule for weights `[n, ...]` with `depth` elements per row that are known only at run time.

    They are first transposed to `[depth, n]` in scratch memory.
    """
    own = operand(lowering, weight)
    n = own.view.shape[0]
    tile = evolve(product_tile(m, n, depth, lowering.isa), ahead=0, stream=0)
    (room,) = lowering.scratch((depth * n + lowering.isa.f32) * 4)
    move(lowering, at, own.at(own.view.reshape(n, depth).T), side(room.pointer, (depth, n), 4), (weight,))
    panel_bytes = tile.columns.widest * lowering.isa.vector_bytes
    work, slots = partition(lowering, Shape(m, n, depth), tile, depth * 4, room.pointer, panel_bytes)
    return Product(tile, work, m, n, slots, lowering.isa, (evolve(room, write=False),))


def lower_convolution(lowering: Lowering, operations: Sequence[int]) -> None:
    """A convolution and its epilogue; all groups run at once if they share a kernel."""
    _, operation, op = lowering.first(operations, Conv2D)
    x, weight, bias = lowering.layer(operations[0])
    n, _, _, c = lowering.shape(weight)
    geometry = plane(op, lowering.shape(x), lowering.shape(weight), lowering.shape(operation.outputs[0]))
    after = epilogue_task(lowering, operations, op.activation, bias, n)
    groups = geometry.channels // c
    if not lowering.subgraph.operands[weight].is_constant:
        found = loose_product(lowering, operations[0], geometry.rows, weight, geometry.taps * c)
        windows = Windows(operations[0], geometry, lowering.operand(x), (x, weight), after)
        _convolve(lowering, windows, c, found, geometry.padded)
        return
    filters = lowering.elements(weight)
    windows = Windows(operations[0], geometry, lowering.operand(x), (x,), after)
    finite = groups > 1 and (not geometry.padded or all_finite(filters))
    if finite and grouped.lowered(lowering, windows, filters, n):
        return
    each = n // groups
    with lowering.merged():
        for group in range(groups):
            part, own = filters[group * each : (group + 1) * each], after.from_column(group * each)
            source = lowering.operand(x, group * c * 4)
            convolve_constant(lowering, operations[0], geometry, part, own, n, source, (x,))


def convolve_constant(
    lowering: Lowering,
    at: int,
    geometry: Plane,
    filters: Array,
    after: EpilogueTask,
    ldc: int,
    source: Pointer,
    reads: Sequence[int],
    holes: bool = False,
) -> None:
    """A convolution with constant filters `[n, height, width, channels]`; the result's pixels are `ldc` elements apart.

    With `holes`, filter elements that are `ABSENT` are not taps.
    """
    n, _, _, c = filters.shape
    windows = Windows(at, geometry, source, reads, after)
    infinite = geometry.padded and not all_finite(filters)
    if not infinite and not holes and planes.lowered(lowering, windows, filters, ldc):
        return
    if geometry.lined(c) and not infinite and lowering.choose(("lines", geometry, n, holes), True, lambda: [holes]):
        along_lines(lowering, windows, filters, ldc, holes)
        return
    kind = Terms.FLOAT if holes else terms(lowering, geometry.rows, c, filters, geometry.pointwise)
    if not holes and winograd.lowered(lowering, windows, filters, ldc, kind):
        return
    if infinite and not holes:
        filters = present(filters)
    code = (geometry.pointwise, after.parameterized(geometry.taps * c).epilogue, holes or infinite)
    taps, apart = filters.transpose(1, 2, 3, 0).reshape(-1, c, n), geometry.stride[1] * geometry.channels * 4
    fractions = geometry.skipped_fractions
    found = product(lowering, geometry.rows, taps, code, kind=kind, apart=apart, term_fractions=fractions)
    found = evolve(found, slots={**found.slots, "ldc": ldc})
    _convolve(lowering, windows, c, found, holes or infinite)


def all_finite(weights: Array) -> bool:
    """Whether weights have neither infinities nor NaN, in one pass, since every padded layer needs it."""
    flat = weights.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(np.dot(flat, flat)) or bool(np.isfinite(flat).all())


def present(weights: Array) -> Array:
    """The weights without `ABSENT` ones."""
    return weights + np.float32(0)  # turns negative zeros positive


def along_lines(
    lowering: Lowering, windows: Windows, filters: Array, ldc: int, holes: bool = False, pitch: int | None = None
) -> None:
    """A convolution of few channels, with several adjacent outputs as one row of the product if they are narrow.

    Rows of outputs are `pitch` pixels apart, by default their width. Each of the adjacent outputs has the filters at
    its own offset along the joint window's width, with `ABSENT` ones elsewhere.
    """
    n, kh, kw, c = filters.shape
    geometry, after = windows.geometry, windows.after
    dense = ldc == n and after.repeatable(lowering)
    chosen = line_tile((kh, kw), geometry.stride[1], c, geometry.out[1], n, lowering.isa, alone=not dense)
    tile, together = chosen.tile, chosen.together
    width = kw + (together - 1) * geometry.stride[1]
    filters = filters if holes or together == 1 else present(filters)
    wide = np.full((kh, width, c, together, n), ABSENT)
    for number in range(together):
        first = number * geometry.stride[1]
        wide[:, first : first + kw, :, number] = filters.transpose(1, 2, 3, 0)
    kind = Terms.FLOAT if holes or together > 1 else terms(lowering, geometry.rows, width * c, filters, False)
    kind = Terms.FLOAT if kind is Terms.HALVES else kind
    rows = wide.reshape(kh if kind is Terms.PAIRED else 1, -1, together * n)
    found = product(lowering, geometry.rows, rows, line=chosen, kind=kind)
    after, source, reads, touched = after.repeated(lowering, together), windows.source, windows.reads, after.accesses
    if kind is Terms.PAIRED:
        elements = geometry.images * geometry.size[0] * geometry.size[1] * c
        room = windows.scratch(lowering, rounded_bytes(lowering, 1, elements))
        made = rounded_rows(lowering, windows.operation, source, (1, elements, elements), reads, room)
        source, reads, touched = made.pointer, (), (made, *touched)
    lines = Lines(kh, width * c, together * geometry.stride[1] * c, together)
    slots: dict[str, Slot] = {**geometry.slots, **after.slots, **found.slots, "c": after.place, "ldc": ldc}
    slots |= {"input": source, "zero": 0, "pitch": geometry.out[1] if pitch is None else pitch}
    algorithm = LineConvF32(tile, lines, after.epilogue, holes or together > 1, kind)
    tiles = geometry.images * geometry.out[0] * panels(found.n, tile.columns, found.isa)
    flops = 2 * geometry.rows * geometry.taps * c * n
    reads = (*reads, *after.reads)
    parts = lowering.parts(tiles, flops)
    lowering.emit(windows.operation, algorithm, slots, tiles, reads, after.writes, flops, touched, parts, found.isa)


def _convolve(lowering: Lowering, windows: Windows, c: int, found: Product, exact: bool) -> None:
    """A convolution of `c` channels: a plain product, or windows gathered tap by tap."""
    touched, flops = found.accesses, 2 * windows.geometry.rows * windows.geometry.taps * c * found.n
    after, packed = windows.after.parameterized(windows.geometry.taps * c), not found.accesses
    if found.terms.pairs:
        windows, made = rounded_windows(lowering, windows, c)
        touched, c = (made,), windows.geometry.channels
    padding = partial(lowering.constant, np.zeros(c, np.float32))
    skips = bool(windows.geometry.skipped_fractions)
    rows, own = windows_of(windows.geometry, c, windows.source, padding, pointwise=not exact, skips=skips)
    slots, tiles = {**after.slots, **found.slots, **own, "c": after.place}, found.work.tiles
    algorithm = Contraction(found.tile, rows, FloatTerms(packed, exact, kind=found.terms), after.epilogue)
    reads, touched = (*windows.reads, *after.reads), (*touched, *after.accesses)
    parts = lowering.parts(tiles, flops)
    lowering.emit(windows.operation, algorithm, slots, tiles, reads, after.writes, flops, touched, parts, found.isa)


def lower_fully_connected(lowering: Lowering, operations: Sequence[int]) -> None:
    """A fully connected layer and its epilogue."""
    at, _, op = lowering.first(operations, FullyConnected)
    x, weight, bias = lowering.layer(at)
    n, depth = lowering.shape(weight)
    m = math.prod(lowering.shape(x)) // depth
    after, constant = (
        epilogue_task(lowering, operations, op.activation, bias, n),
        lowering.subgraph.operands[weight].is_constant,
    )
    if m == 1 and not constant:
        dots(lowering, at, x, weight, (1, n, depth), after)
        return
    if n == 1 and after.even:  # the rows of x times a vector
        dots(lowering, at, weight, x, (1, m, depth), epilogue_task(lowering, operations, op.activation, bias, m))
        return
    if constant:
        weights = lowering.elements(weight).T
        code = (True, after.parameterized(depth).epilogue)
        multiply_constant(lowering, at, x, m, weights, after, code)
        return
    multiply(lowering, at, x, depth, loose_product(lowering, at, m, weight, depth), after)


def multiply_constant(
    lowering: Lowering, at: int, x: int, m: int, weights: Array, after: EpilogueTask, code: Hashable = None
) -> None:
    """The product of the `m` rows of `x` and constant weights `[depth, n]`, with the best tile for `code`."""
    depth = len(weights)
    kind = terms(lowering, m, depth, weights)
    if kind is Terms.FLOAT and depth >= _LONG_SUM and _has_rows(m):
        _multiply_in_parts(lowering, at, x, m, weights, after)
    else:
        multiply(lowering, at, x, depth, product(lowering, m, weights[None], code, kind=kind, apart=depth * 4), after)


def _has_rows(m: int) -> bool:
    """Whether the rows of a product are enough to add its terms in parts."""
    several = hint(m) >= _ROWS_OF_PARTS
    guard(m >= _ROWS_OF_PARTS if several else m < _ROWS_OF_PARTS)
    return several


def _multiply_in_parts(lowering: Lowering, at: int, x: int, m: int, weights: Array, after: EpilogueTask) -> None:
    """The same, as one product for each part of the terms. All but the last store sums that the next one continues."""
    depth, n = weights.shape
    count = depth // _TOGETHER
    ends = [depth * number // count for number in range(count + 1)]
    *_, sums, others = lowering.scratch(*(access.nbytes for access in after.accesses), m * n * 4, m * n * 4)
    for first, end in pairwise(ends):
        own = after if end == depth else EpilogueTask(PLAIN, {}, (), sums.pointer, (), (sums,))
        own = own.after(others, n) if first else own
        code = (True, own.parameterized(end - first).epilogue)
        found = product(lowering, m, weights[None, first:end], code, apart=depth * 4)
        multiply(lowering, at, x, depth, found, own, first, end - first)
        sums, others = others, sums  # a product may compute rows twice, so it must not overwrite what it adds


def multiply(
    lowering: Lowering,
    at: int,
    x: int,
    depth: int,
    found: Product,
    after: EpilogueTask,
    first: int = 0,
    count: int | None = None,
) -> None:
    """The product of the rows of `x`, with `depth` elements each, or of `count` of these from `first` on, and a matrix.

    Only products of floats may have fewer terms than elements.
    """
    count = depth if count is None else count
    after, flops, touched, reads = (
        after.parameterized(count),
        2 * found.m * found.n * count,
        (*found.accesses, *after.accesses),
        (x, *after.reads),
    )
    source, apart = lowering.operand(x, first * 4), depth
    if found.terms.pairs:
        made = rounded_rows(lowering, at, source, (found.m, depth, depth), (x,), shared=True)
        source, touched, reads = made.pointer, (made, *after.accesses), after.reads
        apart = count = (depth + 1) // 2
    rows, slots = rows_of(source, count, apart)
    slots |= {**found.slots, **after.slots, "c": after.place}
    algorithm = Contraction(found.tile, rows, FloatTerms(not found.accesses, kind=found.terms), after.epilogue)
    parts = lowering.parts(found.work.tiles, flops)
    lowering.emit(at, algorithm, slots, found.work.tiles, reads, after.writes, flops, touched, parts, found.isa)
