"""StableHLO operators with sizes, axes or subgraphs in their options; the elementwise ones are in other files."""

from __future__ import annotations

from onert.ir import ModelError, Op, TensorType
from onert.ir import shape as shapes
from onert.ir.ops.control_flow.control import Call, Case
from onert.ir.ops.custom import Unsupported
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.stablehlo.gather import BitGenerator, HloGather, HloRngBitGenerator
from onert.ir.ops.stablehlo.products import HloConvolution, HloDotGeneral, Places
from onert.ir.ops.stablehlo.shapes_and_elements import (
    HloBroadcastInDim,
    HloClamp,
    HloDynamicSlice,
    HloDynamicUpdateSlice,
    HloIota,
    HloPad,
    HloSlice,
    HloTranspose,
)
from onert.ir.ops.stablehlo.sliding import Sliding
from onert.ir.ops.stablehlo.with_bodies import HloReduce, HloReduceWindow, HloScatter, HloSort

from .control import WHILE
from .importer import Operator, Table, choice, fixed, read, result_dtype, unranked_results


def _result(operator: Operator, index: int = 0) -> TensorType:
    if len(operator.outputs) <= index:
        raise ModelError(f"has {len(operator.outputs)} outputs, expected {index + 1}")
    return operator.outputs[index]


def _shape(operator: Operator, index: int = 0) -> tuple[int, ...]:
    """The result's shape, which is given only by the file."""
    return shapes.static(_result(operator, index).shape)


def _vectors(operator: Operator, *fields: str) -> list[tuple[int, ...]]:
    return [operator.integers(field) for field in fields]


def _margins(operator: Operator, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The margins before and after each of `count` dimensions, stored as pairs; 0 if the field is empty."""
    pairs = operator.integers("padding") or (0,) * (2 * count)
    if len(pairs) != 2 * count:
        raise ModelError(f"padding has {len(pairs)} elements, expected {2 * count}")
    return pairs[0::2], pairs[1::2]


def _dot_general(operator: Operator) -> Op:
    fields = (f"{side}_{kind}_dimensions" for kind in ("batching", "contracting") for side in ("lhs", "rhs"))
    return HloDotGeneral(_result(operator).dtype, *_vectors(operator, *fields))


def _places(operator: Operator, batch: str, feature: str, spatial: str) -> Places:
    return Places(operator.integer(batch), operator.integer(feature), operator.integers(spatial))


def _sliding(operator: Operator, rank: int, dilations: str, window_dilations: str) -> Sliding:
    """How windows slide along `rank` dimensions, by the names of the fields; vectors default to ones."""
    given = _vectors(operator, "window_strides", dilations, window_dilations)
    strides, *apart = (each or (1,) * rank for each in given)
    return Sliding(strides, *_margins(operator, rank), *apart)


def _convolution(operator: Operator) -> Op:
    space = len(operator.integers("input_spatial_dimensions"))
    return HloConvolution(
        _result(operator).dtype,
        _places(operator, "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
        _places(
            operator, "kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"
        ),
        _places(operator, "output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
        _sliding(operator, space, "lhs_dilation", "rhs_dilation"),
        operator.flags("window_reversal") or (False,) * space,
        operator.integer("feature_group_count"),
        operator.integer("batch_group_count"),
    )


def _reduce_window(operator: Operator) -> Op:
    size = operator.integers("window_dimensions")
    sliding = _sliding(operator, len(size), "base_dilations", "window_dilations")
    return HloReduceWindow(operator.integer("body_subgraph_index"), size, sliding)


def _bits(operator: Operator) -> Op:
    algorithm = choice(operator, "algorithm", tuple(BitGenerator))
    return HloRngBitGenerator(algorithm, _result(operator, 1).dtype, _shape(operator, 1))


def _concatenate(operator: Operator) -> Op:
    axis = operator.integer("dimension")
    if axis < 0:
        raise ModelError(f"dimension is {axis}, expected at least 0")
    return Concat(axis)


TABLE: Table = {
    "STABLEHLO_BROADCAST_IN_DIM": read(HloBroadcastInDim, dimensions="broadcast_dimensions", shape=_shape),
    "STABLEHLO_CASE": read(Case, branches="branch_subgraph_indices", results=unranked_results),
    "STABLEHLO_CLAMP": fixed(HloClamp()),
    "STABLEHLO_COMPOSITE": read(Call, subgraph="decomposition_subgraph_index", results=unranked_results),
    "STABLEHLO_CONCATENATE": _concatenate,
    "STABLEHLO_CONVOLUTION": _convolution,
    "STABLEHLO_CUSTOM_CALL": lambda operator: Unsupported(
        f"STABLEHLO_CUSTOM_CALL {operator.text('call_target_name')}", operator.outputs
    ),
    "STABLEHLO_DOT_GENERAL": _dot_general,
    "STABLEHLO_DYNAMIC_SLICE": read(HloDynamicSlice, sizes="slice_sizes"),
    "STABLEHLO_DYNAMIC_UPDATE_SLICE": fixed(HloDynamicUpdateSlice()),
    "STABLEHLO_GATHER": read(HloGather),
    "STABLEHLO_IOTA": read(HloIota, dimension="iota_dimension", to=result_dtype, shape=_shape),
    "STABLEHLO_PAD": read(HloPad, low="edge_padding_low", high="edge_padding_high", interior="interior_padding"),
    "STABLEHLO_REDUCE": read(HloReduce),
    "STABLEHLO_REDUCE_WINDOW": _reduce_window,
    "STABLEHLO_RESHAPE": read(Reshape, new_shape=_shape),
    "STABLEHLO_RNG_BIT_GENERATOR": _bits,
    "STABLEHLO_SCATTER": read(HloScatter, body="update_computation_subgraph_index"),
    "STABLEHLO_SLICE": read(HloSlice, starts="start_indices", limits="limit_indices"),
    "STABLEHLO_SORT": read(HloSort, body="comparator_subgraph_index"),
    "STABLEHLO_TRANSPOSE": read(HloTranspose),
    "STABLEHLO_WHILE": WHILE,
}
CUSTOM: Table = {}
