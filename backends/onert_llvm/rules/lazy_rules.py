"""The rules for rare kinds of operations, imported only if a model has one."""

from __future__ import annotations

from functools import cache

from onert.ir import Op
from onert.ir.ops.contraction.block_codes import BlockFullyConnected
from onert.ir.ops.contraction.cached_attention import CachedAttention
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.ops.control_flow.refuse import Refuse
from onert.ir.ops.data_movement.columns import FromColumns
from onert.ir.ops.data_movement.dense import SparseToDense
from onert.ir.ops.data_movement.element_indices import GatherElements, OverwrittenSlices, ScatterSlices
from onert.ir.ops.data_movement.fill import CountedWhere, TopK, Within
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice, ScatterNd
from onert.ir.ops.data_movement.part_update import Overwritten
from onert.ir.ops.lookup.table_of_values import LookUp
from onert.ir.ops.lookup.trees import TreeEnsemble
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.linear_attention import LinearAttention
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.svdf import SVDF
from onert.ir.ops.recurrent.tanh_of_sum import TanhOfSum
from onert.ir.ops.reduction.coupling import CoupledProbabilities
from onert.ir.ops.reduction.scan import RFFT2D, CumProd, CumSum
from onert.ir.ops.reduction.segment import ReduceRanges, SegmentSum, UnsortedSegment
from onert.ir.ops.reduction.unpool import MaxPoolWithArgmax2D, MaxPoolWithIndices, MaxUnpool2D
from onert.ir.ops.stablehlo.shapes_and_elements import HloDynamicSlice, HloDynamicUpdateSlice
from onert.ir.ops.vision_audio.boxes import CountedBoxes
from onert.ir.ops.vision_audio.detection import DetectionPostProcess, NonMaxSuppression
from onert.ir.ops.vision_audio.fourier import Fourier
from onert.ir.ops.vision_audio.interpolate import Interpolate
from onert.ir.ops.vision_audio.sampling import RoiAlign
from onert_llvm.lower.control_flow.loop_branch import Find, Fuse, InnerGraphRules, Why
from onert_llvm.lower.rule import Rule, rule

_RULES: dict[type[Op], tuple[Rule, ...]] = {
    GRU: (rule("recurrent.gru"),),
    LinearAttention: (rule("recurrent.linear_attention"),),
    CachedAttention: (rule("contraction.attention.cached"),),
    LSTM: (rule("recurrent.lstm_float"), rule("recurrent.lstm_dynamic_range"), rule("recurrent.lstm_int8")),
    SVDF: (rule("recurrent.svdf_int8"),),
    TanhOfSum: (rule("elementwise.tanh_of_sum"),),
    DetectionPostProcess: (rule("vision_audio.detection"),),
    BlockFullyConnected: (rule("contraction.byte_products.codes", anchor=True),),
    Conv3D: (rule("contraction.spatial.conv3d", "lower_convolution", anchor=True),),
    TransposeConv3D: (rule("contraction.spatial.conv3d", "lower_transposed"),),
    RFFT2D: (rule("vision_audio.rfft"),),
    Fourier: (rule("vision_audio.rfft", "lower_rows", "why_not_rows"),),
    **dict.fromkeys((CumSum, CumProd), (rule("reduction.order", "lower_sum"),)),
    TopK: (rule("reduction.order", "lower_top"),),
    **dict.fromkeys((MaxPoolWithArgmax2D, MaxPoolWithIndices), (rule("reduction.indexed_pool"),)),
    MaxUnpool2D: (rule("reduction.indexed_pool", "lower_inverse"),),
    Interpolate: (
        rule("data_movement.gather", "lower_picked", "why_not_picked"),
        rule("vision_audio.float_resize", "lower_interpolated", "why_not_interpolated"),
    ),
    RoiAlign: (rule("vision_audio.regions"),),
    NonMaxSuppression: (rule("vision_audio.suppression"),),
    CountedWhere: (rule("data_movement.where"),),
    GatherElements: (rule("data_movement.gather", "lower_elements", "why_not_elements"),),
    Within: (rule("data_movement.where", "lower_within"),),
    CountedBoxes: (rule("vision_audio.suppression", "lower_classes", "why_not_classes"),),
    FromColumns: (rule("data_movement.columns"),),
    ScatterNd: (rule("data_movement.scatter"),),
    ScatterSlices: (rule("data_movement.scatter", "lower_combined", "why_not_combined"),),
    SparseToDense: (rule("data_movement.scatter", "lower_sparse"),),
    **dict.fromkeys((SegmentSum, UnsortedSegment), (rule("data_movement.scatter", "lower_segments"),)),
    **dict.fromkeys(
        (DynamicUpdateSlice, HloDynamicSlice, HloDynamicUpdateSlice), (rule("data_movement.dynamic_slice"),)
    ),
    TreeEnsemble: (rule("lookup.trees"),),
    ReduceRanges: (rule("lookup.row_ranges"),),
    CoupledProbabilities: (rule("reduction.coupling"),),
    LookUp: (rule("lookup.keys"),),
    Refuse: (rule("control_flow.refuse"),),
    Overwritten: (rule("data_movement.dynamic_slice", "lower_overwritten"),),
    OverwrittenSlices: (rule("data_movement.gather", "lower_overwritten", "why_not_overwritten"),),
}
"""By kind of operation, the rules for different element types, the best first."""


_IN_TURN = frozenset((LSTM, SVDF, DetectionPostProcess, CountedWhere, CountedBoxes, Loop, Branch))
"""Kinds that mostly run on one thread, because each step depends on the one before."""


def most_threads(op: Op) -> int | None:
    """The most threads that can share an operation; None for no limit."""
    return 1 if type(op) in _IN_TURN else None


def rules(kind: type[Op], why: Why, find: Find, fuse: Fuse) -> tuple[Rule, ...]:
    """The rules for a kind; the functions provide what operations with inner graphs need to know about inner ones."""
    own = _inner_graph_rules(why, find, fuse).get(kind)
    return (*_RULES.get(kind, ()), *(() if own is None else (own,)))


@cache
def _inner_graph_rules(why: Why, find: Find, fuse: Fuse) -> dict[type[Op], Rule]:
    """The rules for operations with inner graphs."""
    return dict(InnerGraphRules(why, find, fuse).rules())
