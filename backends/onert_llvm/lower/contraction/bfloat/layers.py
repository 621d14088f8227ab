"""Products of bfloat16 or float16, which a precision allows: where they are taken, and how rows become pairs."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from onert.ir import Array
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.contraction.bfloat.round_rows import RoundRows
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.epilogue import Windows
from onert_llvm.schedule.bfloat_packing import LARGEST_HALF, roundable

FEW_ROWS = 4
"""With fewer rows than so many, a product takes as long as its weights take to read: these alone are rounded."""

_TOGETHER = 1 << 12
"""Elements that are rounded as one piece."""


def terms(lowering: Lowering, m: int, depth: int, weights: Array, pointwise: bool = True) -> Terms:
    """What `m` rows of `depth` elements times constant weights are products of, by the precision that was chosen."""
    isa = lowering.isa
    if lowering.settings.precision == "fp16":
        halves = isa.half and m >= FEW_ROWS and depth > 1 and roundable(weights, LARGEST_HALF)
        return Terms.HALVES if halves else Terms.FLOAT
    if lowering.settings.precision != "bf16" or isa.small:
        return Terms.FLOAT
    few = pointwise and m < FEW_ROWS
    if not (few or isa.bfloat) or (few and depth == 1) or not roundable(weights):
        return Terms.FLOAT
    return Terms.WIDENED if few else Terms.PAIRED


def rounded_windows(lowering: Lowering, windows: Windows, channels: int) -> tuple[Windows, Access]:
    """The same windows over pixels of so many channels as pairs, and the memory that has these."""
    geometry = windows.geometry
    pixels = geometry.images * geometry.size[0] * geometry.size[1]
    shape = pixels, channels, geometry.channels
    room = windows.scratch(lowering, rounded_bytes(lowering, pixels, channels))
    made = shared_rows(lowering, windows.operation, windows.source, shape, windows.reads, room)
    paired = evolve(geometry, channels=(channels + 1) // 2)
    return evolve(windows, geometry=paired, source=made.pointer, reads=()), made


def shared_rows(
    lowering: Lowering,
    at: int,
    source: Pointer,
    shape: tuple[int, int, int],
    reads: Sequence[int],
    room: Access | None = None,
) -> Access:
    """The same as `rounded_rows`, made once for layers in a row with the same input, as queries, keys and values."""
    what = ("pairs", source, shape)
    found: Access = lowering.left(what) or lowering.leave(what, rounded_rows(lowering, at, source, shape, reads, room))
    return found


def rounded_bytes(lowering: Lowering, rows: int, size: int) -> int:
    """Bytes of so many rows of pairs; none where the precision does not ask for them."""
    return rows * ((size + 1) // 2) * 4 if lowering.settings.precision in ("bf16", "fp16") else 0


def rounded_rows(
    lowering: Lowering,
    at: int,
    source: Pointer,
    shape: tuple[int, int, int],
    reads: Sequence[int],
    made: Access | None = None,
) -> Access:
    """Rows of floats as rows of pairs in scratch memory, which may be given: how many, their elements, and how far they
    are apart.
    """
    rows, size, pitch = shape
    if made is None:
        (made,) = lowering.scratch(rounded_bytes(lowering, rows, size))
    total, group = (rows - 1) * pitch + size, max(1, _TOGETHER // size)
    if size == pitch and (size % 2 == 0 or rows == 1):
        rows, size, pitch, group = -(-total // _TOGETHER), _TOGETHER, _TOGETHER, 1
    slots: dict[str, Slot] = {"x": source, "out": made.pointer}
    slots |= {"rows": rows, "size": size, "pitch": pitch, "total": total, "group": group}
    rounding = RoundRows(lowering.settings.precision == "fp16")
    lowering.emit(at, rounding, slots, -(-rows // group), reads, (), 0, (made,))
    return evolve(made, write=False)
