"""Constant filters of 8-bit layers as signed bytes, and the scaling of their sums to the result's scale."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.rescale import filter_multipliers, filter_ratios
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.byte_table import stored_table
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import BYTES
from onert_llvm.schedule.float_scaling import FloatMultipliers, Sums, fitted
from onert_llvm.schedule.weight_packing import (
    Multipliers,
    folded_bias,
    pack_columns,
    pack_floats,
    pack_reals,
    real_scaling,
    scaling,
    sum_bounds,
)
from onert_llvm.target.isa import Isa, multiplying

_FILTERS = (DType.INT8, DType.UINT8, DType.INT4, DType.INT2)


def why_not(types: CallTypes) -> str | None:
    """Why a layer of these types is not native, whatever its shape; None if it is."""
    x, weight, result = types.input(0), types.input(1), types.output
    bias = types.inputs[2] if len(types.inputs) > 2 else None
    if x.dtype not in BYTES or weight.dtype not in _FILTERS or result.dtype is not x.dtype:
        return "only 8-bit activations with filters of 8 bits or less are native"
    if bias is not None and bias.dtype is not DType.INT32:
        return f"its bias is {bias.dtype.text}, expected i32"
    return why_not_constant(types)


def why_not_constant(types: CallTypes) -> str | None:
    """Why a layer of these types is not native, whatever its element types; None if it may be."""
    x, weight, result = types.input(0), types.input(1), types.output
    if any(t is not None and t.value is None for t in types.inputs[1:3]):
        return "filter and bias are not constants"
    if any(t.quantization is None for t in (x, weight, result)):
        return "a tensor has no quantisation"
    if 0 in (x.shape + weight.shape + result.shape):
        return "a tensor has no elements"
    return None


@frozen(eq=False)
class Filter:
    """Signed bytes in the model's order, the zero point that is still to be subtracted from them, and the `bits` of
    each that are packed."""

    values: Array
    zero: int
    bits: int = 8

    def ordered(self, values: Array) -> Filter:
        """The same elements in another order or shape."""
        return Filter(values, self.zero)


def stored(weight: TensorType) -> Filter:
    """A constant filter: with its zero point subtracted if the differences fit in bytes, else as it is stored."""
    assert weight.quantization is not None
    assert weight.value is not None
    zero = weight.quantization.zero_points[0]
    if zero == 0 and weight.value.dtype == np.int8:
        return Filter(weight.value, 0)
    wide = weight.value.astype(np.int16)
    centred = wide - np.int16(zero)
    if centred.min() >= -128 and centred.max() <= 127:
        return Filter(centred.astype(np.int8), 0)
    moved = 128 if weight.dtype is DType.UINT8 else 0
    return Filter((wide - moved).astype(np.int8), zero - moved)


@frozen(eq=False)
class Outputs:
    """Everything that scaling some outputs depends on: types on both sides, activation, and whether to round once.

    `real` is set where TFLite rounds only once. `table` is the lookup table for results, if byte functions follow.
    """

    types: CallTypes
    activation: Activation
    real: bool = False
    table: Array | None = None

    @property
    def signed(self) -> bool:
        """Whether activations are signed bytes."""
        return self.types.input(0).dtype is DType.INT8

    def scaled(
        self, lowering: Lowering, weights: Filter, part: slice | Array = slice(None), places: Array | None = None
    ) -> tuple[dict[str, Slot], Requantize]:
        """The slots of requantisation for the outputs `part`, and its kind; `weights.values[taps, k, n]` are theirs.

        `places` is the output in each lane, if they are not in order.
        """
        x, result = self.types.input(0), self.types.output
        bias = self.bias(part)
        isa, folded = lowering.isa, self.folded(weights, bias, lowering.isa)
        limits = self.activation.bounds(result)
        bounds = sum_bounds(weights.values, bias, x.zero_point, weights.zero, self.signed)
        rectified = limits[0] >= result.zero_point
        reals, pair = self._multipliers(part)
        floats = self._floats(reals, pair, bounds, bias, rectified) if isa.rounds else None
        if floats is not None:
            how = Scaling.FLOAT
            columns = lowering.deferred_constant(lambda: pack_floats(folded(), floats, isa, places))
        elif pair is None:
            how, rectified = real_scaling(isa), False
            columns = lowering.deferred_constant(lambda: pack_reals(folded(), reals, isa, places))
        else:
            how = scaling(bounds, pair, result.zero_point)
            rectified = rectified and how is Scaling.NARROW
            columns = lowering.deferred_constant(
                lambda: pack_columns(how, folded(), pair, result.zero_point, isa, rectified, places)
            )
        slots: dict[str, Slot] = {"columns": columns, "zero_point": result.zero_point, "weight_zero": weights.zero}
        kind = Requantize(how, weight_zero_point=weights.zero != 0, rectified=rectified)
        return self.ended(lowering, slots, limits, kind)

    def folded(self, weights: Filter, bias: Array | None, isa: Isa) -> Callable[[], Array]:
        """A function that computes the initial values of the accumulators."""
        zero = self.types.input(0).zero_point
        own = multiplying(isa, weights.bits)
        return lambda: folded_bias(weights.values, bias, zero, weights.zero, own, self.signed)

    def ended(
        self, lowering: Lowering, slots: dict[str, Slot], limits: tuple[int, int], how: Requantize
    ) -> tuple[dict[str, Slot], Requantize]:
        """The same with bounds and with the lookup table, as far as they are needed."""
        every = self.types.input(0).dtype.limits
        kind = evolve(how, clamped=limits != every, tabled=self.table is not None)
        slots = {**slots, "low": limits[0], "high": limits[1]}
        if self.table is not None:
            slots["table"] = lowering.constant(stored_table(lowering.isa, self.table))
        return {name: slots[name] for name in kind.slots}, kind

    def _multipliers(self, part: slice | Array) -> tuple[Array, Multipliers | None]:
        """The multipliers of `part` (or one for all) in float64, and in fixed point where TFLite's are."""
        x, weight, result = self.types.input(0), self.types.input(1), self.types.output
        if self.real:
            reals = filter_ratios(x, weight, result)
            return reals[part] if len(reals) > 1 else reals, None
        mantissas, shifts = filter_multipliers(x, weight, result)
        if len(mantissas) > 1:
            mantissas, shifts = mantissas[part], shifts[part]
        return np.ldexp(mantissas.astype(np.float64), shifts.astype(np.int32) - 31), (mantissas, shifts)

    def _floats(
        self, reals: Array, pair: Multipliers | None, bounds: Array, bias: Array | None, rectified: bool
    ) -> FloatMultipliers | None:
        """The multipliers as floats for sums within `bounds`; None if these would round differently."""
        result, late = self.types.output, np.zeros(len(bounds))
        if pair is not None:
            late = late + np.where(pair[1] < 0, np.ldexp(0.5, pair[1].astype(np.int32)), 0.0)
        start = np.zeros(len(bounds), np.int64) if bias is None else bias.astype(np.int64)
        sums, limits = Sums(start, bounds - np.abs(start)), self.activation.bounds(result)
        each = np.broadcast_to(reals, bounds.shape)
        return fitted(each, late, sums, limits, result.zero_point, rectified=rectified, alike=self.real)

    def bias(self, part: slice | Array) -> Array | None:
        """The bias of the outputs `part`, if there is one."""
        bias = self.types.inputs[2] if len(self.types.inputs) > 2 else None
        return None if bias is None or bias.value is None else bias.value.reshape(-1)[part]
