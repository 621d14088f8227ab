"""Products in bfloat16 or float16, if the precision setting allows them: when to use them, and rounding to pairs."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from onert.ir import Array
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.contraction.bfloat.round_rows import RoundRows
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.epilogue import Windows
from onert_llvm.schedule.bfloat_packing import LARGEST_HALF, are_bfloat, are_half, roundable

FEW_ROWS = 4
"""With fewer rows, a product takes as long as reading its weights: only these are rounded."""

_MANY = 1 << 18
"""The bytes of float32 weights beyond which a core's own cache rarely keeps them between runs."""

_TOGETHER = 1 << 12
"""The number of elements that are rounded as one piece."""


def terms(
    lowering: Lowering, m: int, depth: int, weights: Array, pointwise: bool = True, like: int | None = None
) -> Terms:
    """The terms of a product of `m` rows of `depth` elements and constant weights, for the chosen precision.

    With few rows, many weights that are 16-bit numbers already are stored as such: the sums stay the same. There are
    many if `like` columns have many bytes, or all if it is not given.
    """
    nbytes = weights.nbytes if like is None else weights.itemsize * depth * like
    found = _rounded(lowering, m, depth, weights, pointwise)
    if found is not Terms.FLOAT or not pointwise or nbytes < _MANY or depth == 1 or lowering.isa.small:
        return found
    if is_symbolic(m) or m >= FEW_ROWS:
        return Terms.FLOAT
    if are_bfloat(weights):
        return Terms.WIDENED
    return Terms.WIDENED_HALVES if lowering.isa.converts_halves and are_half(weights) else Terms.FLOAT


def _rounded(lowering: Lowering, m: int, depth: int, weights: Array, pointwise: bool) -> Terms:
    """The terms that the chosen precision allows to be rounded."""
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
    """The same windows over pixels of `channels` rounded to pairs, and the memory that holds these."""
    geometry = windows.geometry
    pixels = geometry.images * geometry.size[0] * geometry.size[1]
    shape = pixels, channels, geometry.channels
    room = windows.scratch(lowering, rounded_bytes(lowering, pixels, channels))
    made = rounded_rows(lowering, windows.operation, windows.source, shape, windows.reads, room, shared=True)
    paired = evolve(geometry, channels=(channels + 1) // 2)
    return evolve(windows, geometry=paired, source=made.pointer, reads=()), made


def rounded_bytes(lowering: Lowering, rows: int, size: int) -> int:
    """The bytes of this many rows of pairs; 0 if the precision needs none."""
    return rows * ((size + 1) // 2) * 4 if lowering.settings.precision in ("bf16", "fp16") else 0


def rounded_rows(
    lowering: Lowering,
    at: int,
    source: Pointer,
    shape: tuple[int, int, int],
    reads: Sequence[int],
    made: Access | None = None,
    *,
    shared: bool = False,
) -> Access:
    """Rows of floats rounded to rows of pairs in scratch memory, which may be given; `shape` is the number of rows,
    their elements, and their distance. With `shared` this is done once for consecutive layers with the same input
    (queries, keys and values).
    """
    what = ("pairs", source, shape)
    found: Access | None = lowering.retained(what) if shared else None
    if found is not None:
        return found
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
    result = evolve(made, write=False)
    return lowering.retain(what, result) if shared else result
