"""The packed weights of recurrent layers, and the products of all input rows with their weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import Array
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.kernels.contraction.contraction import Contraction
from onert_llvm.kernels.contraction.epilogue import Epilogue
from onert_llvm.kernels.contraction.float_terms import FloatTerms
from onert_llvm.kernels.contraction.register_tile import Columns
from onert_llvm.kernels.recurrent.matvec import Matrix, cut, cut_int8, full_panels
from onert_llvm.lower.command_builder import Lowering, Pack
from onert_llvm.lower.contraction.bfloat.layers import rounded_rows, terms
from onert_llvm.lower.contraction.conv_geometry import rows_of
from onert_llvm.lower.contraction.float_conv_fc import product
from onert_llvm.schedule.bfloat_packing import pack_bfloat, pack_half
from onert_llvm.schedule.float_packing import pack_f32
from onert_llvm.schedule.weight_packing import pack_int8
from onert_llvm.target.isa import Isa

from .division import Division

_PACKS: dict[Terms, Pack] = {
    Terms.FLOAT: pack_f32,
    Terms.WIDENED: pack_bfloat,
    Terms.WIDENED_HALVES: pack_half,
}


def side_by_side(gates: Sequence[Array], isa: Isa, division: Division | None = None) -> Array:
    """Arrays `[..., n]` concatenated along their last axis, each padded with zeros to whole registers; part by part if
    their units are divided."""
    outer, n = gates[0].shape[:-1], gates[0].shape[-1]
    parts, padded = (1, isa.whole(n)) if division is None else (division.parts, division.padded)
    out = np.zeros((*outer, len(gates), parts * padded), gates[0].dtype)
    for i, gate in enumerate(gates):
        out[..., i, :n] = gate
    if parts > 1:
        out = np.moveaxis(out.reshape(*outer, len(gates), parts, padded), -2, -3)
    return out.reshape(*outer, -1)


def matrix_f32(lowering: Lowering, name: str, weights: Array, parts: int = 1) -> tuple[Matrix, dict[str, Slot]]:
    """Weights `[depth, n]`, n in whole registers, packed for products with one vector; and the matrix's slots. Each of
    the equal `parts` of the columns is a matrix of its own, one after the other.
    """
    kind = terms(lowering, 1, len(weights), weights)
    columns = cut(weights.shape[1] // parts, lowering.isa)
    return _matrix(lowering, name, weights, columns, _PACKS[kind], kind, parts)


def matrix_int8(lowering: Lowering, name: str, weights: Array) -> tuple[Matrix, dict[str, Slot]]:
    """The same for signed bytes."""
    return _matrix(lowering, name, weights, cut_int8(weights.shape[1], lowering.isa), pack_int8)


def _matrix(
    lowering: Lowering,
    name: str,
    weights: Array,
    columns: Columns,
    pack: Pack,
    kind: Terms = Terms.FLOAT,
    parts: int = 1,
) -> tuple[Matrix, dict[str, Slot]]:
    n, isa = weights.shape[1] // parts, lowering.isa
    packed = [pack(part, columns, isa) for part in np.split(weights, parts, axis=1)]
    pointer = lowering.constant(packed[0] if parts == 1 else np.concatenate(packed))
    return Matrix.of(name, n, columns, isa, kind), {name: pointer, f"{name}_full": full_panels(n, columns, isa)}


def rows_times(
    lowering: Lowering, at: int, x: int, weights: Array, bias: Array | None, target: Access, pairs: Access, like: int
) -> None:
    """Emit the command that stores every row of `x` times `weights[k, n]` plus the bias to scratch memory.

    `pairs` is scratch memory for the rows as pairs. The sums have the bits of those of a layer that is not divided,
    whose weights have `like` columns.
    """
    depth, n = weights.shape
    m = math.prod(lowering.shape(x)) // depth
    found = product(lowering, m, weights[None], kind=terms(lowering, m, depth, weights, like=like), like=like)
    flops, source, reads, touched = 2 * m * n * depth, lowering.operand(x), [x], [target]
    if found.terms.pairs:
        pairs = rounded_rows(lowering, at, source, (m, depth, depth), reads, pairs)
        depth, source, reads, touched = (depth + 1) // 2, pairs.pointer, [], [target, pairs]
    rows, slots = rows_of(source, depth)
    slots |= {**found.slots, "c": target.pointer}
    if bias is not None:
        slots["bias"] = lowering.constant(bias)
    algorithm = Contraction(found.tile, rows, FloatTerms(kind=found.terms), Epilogue(bias=bias is not None))
    lowering.emit(at, algorithm, slots, found.work.tiles, reads, (), flops, touched, isa=found.isa)
