"""Products with a constant matrix of signed bytes: its packed form, for any use of the sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array
from onert.ir.symbolic.trace import hint
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.byte_terms import ByteTerms
from onert_llvm.kernels.contraction.contraction import Contraction, Ending, Operand
from onert_llvm.kernels.contraction.int8_microkernel import step_terms
from onert_llvm.kernels.contraction.operands import Patches
from onert_llvm.kernels.contraction.register_tile import LINE, Tile
from onert_llvm.kernels.contraction.widened_rows import WidenedProduct
from onert_llvm.lower.command_builder import Lowering, Pack
from onert_llvm.schedule.byte_outliers import Outliers
from onert_llvm.schedule.cost_model import Shape, with_prefetch
from onert_llvm.schedule.weight_packing import PACKS, panel_bytes_int8
from onert_llvm.target.isa import Isa
from onert_llvm.target.machines import scratch_stride

from .partition import partition

_WIDE, _APART = 2, 32
"""The bytes of a widened activation, and the elements between widened rows so that they are not whole pages apart."""

_LEAST_ROWS = 2
"""The fewest rows that are widened."""


@frozen(eq=False)
class ByteProduct:
    """How a product is divided into `tiles` work tiles, the slots for its matrix and its sizes, and the memory where
    rows are widened, if they are.
    """

    tile: Tile
    tiles: int
    slots: dict[str, Slot]
    rooms: tuple[Access, ...] = ()


def widens(lowering: Lowering, m: int, bits: int = 8) -> bool:
    """Whether the rows of a product of `m` rows and weights of `bits` are widened before they are multiplied."""
    return lowering.isa.widens_bytes and not lowering.compact and bits == 8 and hint(m) >= _LEAST_ROWS


def byte_product(
    lowering: Lowering,
    m: int,
    weights: Array,
    tile: Tile,
    row_bytes: int,
    packed_for: Isa | None = None,
    bits: int = 8,
    pack: Pack | None = None,
    widened: bool = False,
    beside: Sequence[Access] = (),
) -> ByteProduct:
    """The product of `m` rows, each of which reads `row_bytes` that no other row reads, and `weights[taps, k, n]`.

    The weights are packed for the target (or `packed_for`), as `bits` each, by the usual packing or by `pack`. Rows of
    the result are contiguous. Rows are `widened` in scratch memory `beside` what else is used.
    """
    isa = packed_for or lowering.isa
    taps, depth, n = weights.shape
    packed = lowering.packed(weights, tile.columns, pack or PACKS[bits], isa)
    panel_bytes = panel_bytes_int8(taps, depth, tile.columns, isa, bits)
    run = -(-depth // isa.group) * isa.group
    row = -(-taps * run // LINE) * LINE + _APART
    own = row * _WIDE if widened else row_bytes
    work, slots = partition(lowering, Shape(m, n, own, True), tile, own, packed, panel_bytes)
    if not widened:
        return ByteProduct(tile, work.tiles, slots)
    each = scratch_stride(own * work.mc, lowering.callers, isa)
    (rooms,) = lowering.scratch(each * lowering.callers, beside=beside)
    shared = {"rooms": rooms.pointer, "room": each, "room_row": row, "room_run": run, "terms": taps * run}
    return ByteProduct(tile, work.tiles, slots | shared, (rooms,))


def outlier_slots(lowering: Lowering, product: ByteProduct, outliers: Outliers) -> dict[str, Slot]:
    """The slots that `ByteTerms` reads for weights that are not bytes."""
    count, group, n = outliers.beyond.shape
    count_of_panels, lanes = product.slots["panels"], lowering.isa.f32
    assert isinstance(count_of_panels, int)
    packed = np.zeros((count, count_of_panels * product.tile.columns.widest * lanes, group), np.int8)
    packed[:, :n] = outliers.beyond.transpose(0, 2, 1)
    places = np.stack([outliers.taps, outliers.firsts], axis=1).astype(np.int64)
    return {"outliers": count, "places": lowering.constant(places), "beyond": lowering.constant(packed)}


_BYTES = ByteTerms(0)


def byte_contraction(
    isa: Isa, tile: Tile, rows: Operand, depth: int, ending: Ending, terms: ByteTerms = _BYTES, far: bool = True
) -> Contraction:
    """The kernel of such a product, whose runs of terms have length `depth`; panels may come from `far` memory."""
    if terms.widened:
        return WidenedProduct(tile, rows, ending=ending, terms=terms)
    patched = isinstance(rows, Patches)
    terms = evolve(terms, rest=0 if patched else depth % step_terms(isa, terms.bits))
    return Contraction(with_prefetch(tile, isa) if far and not patched else tile, rows, terms, ending)
