"""Byte SVDF layers (filters over features and time): a product, then the filter over remembered steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import CallTypes, DType
from onert.ir.ops.arithmetic.fixed_point import quantize_multiplier
from onert.ir.ops.recurrent.recurrent import why_no_layer
from onert.ir.ops.recurrent.svdf import SVDF
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Scaling
from onert_llvm.kernels.recurrent.lstm_int8 import ScaledSums
from onert_llvm.kernels.recurrent.svdf_int8 import FilterOverTime
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import rows_of
from onert_llvm.lower.contraction.int8_gemm import byte_contraction, byte_product
from onert_llvm.schedule.cost_model import product_tile
from onert_llvm.schedule.weight_packing import folded_bias, pack_columns

from .weights import side_by_side


def why_not(op: SVDF, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    if types.input(0).dtype is not DType.INT8:
        return "only int8 is native"
    return why_no_layer(types, (0, 4))


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower one step."""
    at, operation, op = lowering.single(operations, SVDF)
    isa = lowering.isa
    x, feature, time, bias, state = operation.inputs
    assert x is not None
    assert feature is not None
    assert time is not None
    assert state is not None
    y, state_out = operation.outputs
    batch, depth = lowering.shape(x)
    filters, memory = lowering.shape(time)
    units, padded = filters // op.rank, isa.whole(filters)
    newest, sums = lowering.scratch(4 * batch * padded, 4 * batch * padded)
    kinds = [lowering.type(i) for i in (x, feature, time, state, y)]

    weights = side_by_side([lowering.elements(feature).T], isa)
    tile = product_tile(batch, padded, depth, isa, integer=True)
    product = byte_product(lowering, batch, weights[None], tile, depth)
    by = quantize_multiplier(kinds[0].scale * kinds[1].scale / kinds[3].scale)
    start = folded_bias(weights, None, kinds[0].zero_point, 0, isa, True)
    one = (np.array([by.mantissa]), np.array([by.shift]))
    rows, own = rows_of(lowering.operand(x), depth)
    slots: dict[str, Slot] = {
        **product.slots,
        **own,
        "c": newest.pointer,
        "columns": lowering.constant(pack_columns(Scaling.WIDE, start, one, 0, isa)),
    }
    sums_of_features = byte_contraction(isa, tile, rows, depth, ScaledSums(), far=False)
    lowering.emit(at, sums_of_features, slots, product.tiles, (x,), (), 2 * batch * padded * depth, (newest,))

    to_y = quantize_multiplier(kinds[3].scale * kinds[2].scale / kinds[4].scale)
    slots = {
        "newest": newest.pointer,
        "padded": padded,
        "sums": sums.pointer,
        "memory": memory,
        "units": units,
        "rank": op.rank,
        "state_zero": kinds[3].zero_point,
        "zero": kinds[4].zero_point,
        "by_mantissa": to_y.mantissa,
        "by_left": max(to_y.shift, 0),
        "by_right": max(-to_y.shift, 0),
    }
    if bias is not None:
        slots["bias"] = lowering.constant(side_by_side([lowering.elements(bias)], isa))
    kernel = FilterOverTime(kinds[3].dtype is DType.INT16, bias is not None)
    touched = (evolve(newest, write=False), sums)
    reads, writes, flops = (
        {"state": state, "time": time},
        {"y": y, "state_out": state_out},
        2 * batch * filters * memory,
    )
    lowering.run(at, kernel, batch, reads, writes, slots, flops, touched)
