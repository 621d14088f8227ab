"""Constant filters of layers with 16-bit activations, and the scaling of their sums to the result's scale."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.rescale import filter_multipliers, filter_ratios
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.requantize_int16 import Rounding, ShortScaling
from onert_llvm.kernels.contraction.short_terms import ShortTerms
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.target.isa import Isa

from .int8_filters import stored, why_not_constant

Part = slice | Array
"""The selected outputs of a layer, or the output of each column."""

_FILTERS = (DType.INT8, DType.INT4, DType.INT2)
_REACH = 1 << 15
"""The largest magnitude of an activation."""

_MOST = 1 << 37
"""Sums in float64 below this stay exact when scaled by a 16-bit multiplier."""

_STEPS = (1 << 14, 1 << 13, 1 << 12, 1 << 11, 1 << 10, 1 << 9, 1 << 8)
"""Candidates for the number of terms between two moves of the sums to float64; the last always fits in 32 bits."""


def why_not(types: CallTypes) -> str | None:
    """Why a layer of these types is not native, whatever its shape; None if it is."""
    x, weight, result = types.input(0), types.input(1), types.output
    bias = types.inputs[2] if len(types.inputs) > 2 else None
    if (x.dtype, result.dtype) != (DType.INT16, DType.INT16) or weight.dtype not in _FILTERS:
        return "only 16-bit activations with filters of 8 bits or less are native"
    reason = why_not_constant(types)
    if reason is not None:
        return reason
    filters = stored(weight)
    if any(t.zero_point for t in (x, result)) or filters.zero:
        return "a zero point is not 0"
    if bias is not None and _magnitude(bias) >= 1 << 31:
        return "its bias needs more than 32 bits"
    terms = filters.values.size // (result.shape[-1] or 1)
    if _magnitude(weight) * terms * _REACH >= _MOST:
        return "its sums need more than 37 bits"
    return None


def _magnitude(type_: TensorType) -> int:
    assert type_.value is not None
    return int(np.abs(type_.value.astype(np.int64)).max(initial=0))


@frozen(eq=False)
class Parameters:
    """Everything that scaling some outputs depends on: the types on both sides and the activation."""

    types: CallTypes
    activation: Activation
    real: bool

    @property
    def wraps(self) -> bool:
        """Whether sums are computed modulo 2**32, as TFLite does for a 32-bit bias."""
        bias = self.types.inputs[2] if len(self.types.inputs) > 2 else None
        return bias is not None and bias.dtype is not DType.INT64

    def bias(self, part: Part, n: int) -> Array:
        bias = self.types.inputs[2] if len(self.types.inputs) > 2 else None
        if bias is None or bias.value is None:
            return np.zeros(n, np.int64)
        return bias.value.reshape(-1)[part].astype(np.int64)

    def depth(self, weights: Array, part: Part) -> tuple[ShortTerms, dict[str, Slot]]:
        """How the terms of `weights[taps, k, n]` are added, and the slots for that."""
        _, depth, n = weights.shape
        sizes = np.abs(weights.astype(np.int64))
        whole = sizes.sum((0, 1)) * _REACH + np.abs(self.bias(part, n))
        odd = depth % 2 == 1
        if self.wraps or whole.max(initial=0) < 1 << 31:
            return ShortTerms(odd, False), {}
        step = next(s for s in _STEPS if _largest(sizes, s) * _REACH < 1 << 31)
        return ShortTerms(odd, True), {"step": step}

    def fits(self, weights: Array) -> bool:
        """Whether all sums of `weights[k, n]` with the bias fit in 32 bits, or need not."""
        whole = np.abs(weights.astype(np.int64)).sum(0) * _REACH
        return self.wraps or bool((whole + np.abs(self.bias(slice(None), len(whole)))).max(initial=0) < 1 << 31)

    def scaled(self, lowering: Lowering, part: Part, n: int) -> tuple[ShortScaling, dict[str, Slot]]:
        """How the outputs `part` are scaled, and the slots for that."""
        x, weight, result = self.types.input(0), self.types.input(1), self.types.output
        low, high = self.activation.bounds(result)
        if self.real:
            rounding, factors = Rounding.AWAY, _columns(filter_ratios(x, weight, result), part, n)
        else:
            pair = filter_multipliers(x, weight, result)
            mantissas, shifts = (_columns(m, part, n) for m in pair)
            rounding = Rounding.FIXED if self.wraps else Rounding.UP
            factors = _fixed(mantissas, shifts, lowering.isa) if self.wraps else _halves_up(mantissas, shifts)
        bias = self.bias(part, n)
        wrapped = (bias & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
        slots: dict[str, Slot] = {
            "bias": lowering.constant(_filled(wrapped, lowering.isa)),
            "factors": lowering.constant(factors if self.wraps and not self.real else _filled(factors, lowering.isa)),
            "low": low,
            "high": high,
        }
        return ShortScaling(rounding), slots


def why_not_scaled(op: object, types: CallTypes) -> str | None:
    """Why the sums of a layer cannot be scaled natively; None if they can."""
    if isinstance(op, FullyConnected):
        return None
    _, shifts = filter_multipliers(types.input(0), types.input(1), types.output)
    return None if shifts.max(initial=0) <= 14 else "its sums are multiplied by more than 16 bits"


def _largest(sizes: Array, step: int) -> int:
    """The largest sum in any column of `step` adjacent values along k, counted from the start of each tap."""
    return int(np.add.reduceat(sizes, range(0, sizes.shape[1], step), axis=1).max(initial=0))


def _columns(values: Array, part: Part, n: int) -> Array:
    return values[part] if len(values) > 1 else np.repeat(values, n)


def _filled(values: Array, isa: Isa) -> Array:
    """The values, padded with zeros to whole registers of columns."""
    return np.concatenate([values, np.zeros(-len(values) % isa.f32, values.dtype)])


def _halves_up(mantissas: Array, shifts: Array) -> Array:
    """TFLite's 16-bit mantissas divided by their powers of two."""
    reduced = np.where(mantissas < 0x7FFF0000, (mantissas + (1 << 15)) >> 16, 0x7FFF)
    return np.ldexp(reduced.astype(np.float64), (shifts - 15).astype(np.int32))


def _fixed(mantissas: Array, shifts: Array, isa: Isa) -> Array:
    """Mantissas, right shifts and left shifts, interleaved by registers."""
    rows = [_filled(row, isa) for row in (mantissas, np.maximum(-shifts, 0), np.maximum(shifts, 0))]
    fields = np.stack(rows).astype(np.int32).reshape(len(rows), -1, isa.f32)
    return np.ascontiguousarray(fields.transpose(1, 0, 2)).reshape(-1)
