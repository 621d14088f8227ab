"""Operators that move, select and create elements."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Operator, Table, choice, fixed, index_type, read, result_dtype
from onert.ir import DType, ModelError, Op
from onert.ir.ops.data_movement.fill import Fill, Range, TopK, Unique, Where
from onert.ir.ops.data_movement.gather import (
    DynamicUpdateSlice,
    EmbeddingLookup,
    Gather,
    GatherNd,
    HashtableLookup,
    OneHot,
    ScatterNd,
)
from onert.ir.ops.data_movement.layout import (
    BatchToSpaceND,
    DepthToSpace,
    Reverse,
    ReverseSequence,
    SpaceToBatchND,
    SpaceToDepth,
    Transpose,
)
from onert.ir.ops.data_movement.slicing import (
    BroadcastArgs,
    BroadcastTo,
    Mirror,
    MirrorPad,
    Pad,
    Slice,
    StridedSlice,
    Tile,
)


def _strided_slice(operator: Operator) -> Op:
    ellipsis = operator.integer("ellipsis_mask")
    if ellipsis & (ellipsis - 1):
        raise ModelError(f"ellipsis_mask is {ellipsis:#b}, expected at most one bit")
    return _SLICE(operator)


_SLICE = read(StridedSlice)


TABLE: Table = {
    "TRANSPOSE": fixed(Transpose()),
    "SPACE_TO_DEPTH": read(SpaceToDepth),
    "DEPTH_TO_SPACE": read(DepthToSpace),
    "SPACE_TO_BATCH_ND": fixed(SpaceToBatchND()),
    "BATCH_TO_SPACE_ND": fixed(BatchToSpaceND()),
    "REVERSE_V2": fixed(Reverse()),
    "REVERSE_SEQUENCE": read(ReverseSequence, sequence_axis="seq_dim", batch_axis="batch_dim"),
    "SLICE": fixed(Slice()),
    "STRIDED_SLICE": _strided_slice,
    "PAD": fixed(Pad()),
    "PADV2": fixed(Pad()),
    "MIRROR_PAD": lambda operator: MirrorPad(choice(operator, "mode", (Mirror.REFLECT, Mirror.SYMMETRIC))),
    "TILE": fixed(Tile()),
    "BROADCAST_TO": fixed(BroadcastTo()),
    "BROADCAST_ARGS": fixed(BroadcastArgs()),
    "GATHER": read(Gather),
    "GATHER_ND": fixed(GatherNd()),
    "EMBEDDING_LOOKUP": lambda operator: EmbeddingLookup(result_dtype(operator)),
    "HASHTABLE_LOOKUP": fixed(HashtableLookup()),
    "SCATTER_ND": fixed(ScatterNd()),
    "ONE_HOT": read(OneHot),
    "DYNAMIC_UPDATE_SLICE": fixed(DynamicUpdateSlice()),
    "FILL": fixed(Fill()),
    "RANGE": fixed(Range()),
    "TOPK_V2": lambda operator: TopK(operator.outputs[1].dtype if len(operator.outputs) > 1 else DType.INT32),
    "WHERE": fixed(Where()),
    "UNIQUE": lambda operator: Unique(index_type(operator, "idx_out_type")),
}
CUSTOM: Table = {}
