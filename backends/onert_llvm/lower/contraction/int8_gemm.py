"""Products with a constant matrix of signed bytes: its packed form, for any use of the sums."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.byte_terms import ByteTerms
from onert_llvm.kernels.contraction.contraction import Contraction, Ending, Operand
from onert_llvm.kernels.contraction.int8_microkernel import step_terms
from onert_llvm.kernels.contraction.operands import Patches
from onert_llvm.kernels.contraction.register_tile import Tile
from onert_llvm.lower.command_builder import Lowering, Pack
from onert_llvm.schedule.byte_outliers import Outliers
from onert_llvm.schedule.cost_model import Shape, with_prefetch
from onert_llvm.schedule.weight_packing import PACKS, panel_bytes_int8
from onert_llvm.target.isa import Isa

from .partition import partition


@frozen(eq=False)
class ByteProduct:
    """How a product is divided into `tiles` work tiles, and the slots for its matrix and its sizes."""

    tile: Tile
    tiles: int
    slots: dict[str, Slot]


def byte_product(
    lowering: Lowering,
    m: int,
    weights: Array,
    tile: Tile,
    row_bytes: int,
    packed_for: Isa | None = None,
    bits: int = 8,
    pack: Pack | None = None,
) -> ByteProduct:
    """The product of `m` rows, each of which reads `row_bytes` that no other row reads, and `weights[taps, k, n]`.

    The weights are packed for the target (or `packed_for`), as `bits` each, by the usual packing or by `pack`. Rows of
    the result are contiguous.
    """
    isa = packed_for or lowering.isa
    taps, depth, n = weights.shape
    packed = lowering.packed(weights, tile.columns, pack or PACKS[bits], isa)
    panel_bytes = panel_bytes_int8(taps, depth, tile.columns, isa, bits)
    work, slots = partition(lowering, Shape(m, n, row_bytes, True), tile, row_bytes, packed, panel_bytes)
    return ByteProduct(tile, work.tiles, slots)


def outlier_slots(lowering: Lowering, product: ByteProduct, outliers: Outliers) -> dict[str, Slot]:
    """The slots that `ByteTerms` reads for weights that are not bytes."""
    count, group, n = outliers.beyond.shape
    count_of_panels, lanes = product.slots["panels"], lowering.isa.f32
    assert isinstance(count_of_panels, int)
    packed = np.zeros((count, count_of_panels * product.tile.columns.widest * lanes, group), np.int8)
    packed[:, :n] = outliers.beyond.transpose(0, 2, 1)
    places = np.stack([outliers.taps, outliers.firsts], axis=1).astype(np.int64)
    return {"outliers": count, "places": lowering.constant(places), "beyond": lowering.constant(packed)}


def byte_contraction(
    isa: Isa,
    tile: Tile,
    rows: Operand,
    depth: int,
    ending: Ending,
    signed: bool = True,
    bits: int = 8,
    far: bool = True,
    outliers: bool = False,
) -> Contraction:
    """The kernel of such a product, whose runs of terms have length `depth`; panels may come from `far` memory."""
    patched = isinstance(rows, Patches)
    terms = ByteTerms(0 if patched else depth % step_terms(isa, bits), signed, bits, outliers)
    return Contraction(with_prefetch(tile, isa) if far and not patched else tile, rows, terms, ending)
