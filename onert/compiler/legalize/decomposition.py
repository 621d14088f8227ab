"""Decompositions and the table that finds them by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from attrs import frozen

from onert.ir import CallTypes, DType, Op
from onert.ir.process import imports
from onert.ir.value import Value

WhyNot = Callable[..., str | None]
"""Given an operation and its types: the reason why it is not decomposed, None if it is."""
Write = Callable[..., Sequence[int]]
"""Given a draft, an operation, its types and its operands in the draft: writes the graph and returns the results."""

MOST_TABLED = 1 << 25
"""The most entries of a table in a decomposition, such as indices along an axis: a run's limits apply only later."""


@frozen
class Decomposition(Value):
    """Operations of a kind as graphs of other kinds, with the same results.

    `why_not(op, types)` says which operations of the kind are left as they are; all types are static.
    `write(draft, op, types, operands)` adds operations to the draft and returns the operands that replace the results,
    with the same types. It is not called if all results are empty. A `plainer` decomposition replaces even a native
    operation.
    """

    why_not: WhyNot
    write: Write
    plainer: bool = False


def always(op: Op, types: CallTypes) -> None:
    """The `WhyNot` of decompositions that apply to every operation of the kind."""


def moves(op: Op, types: CallTypes) -> str | None:
    """Why stored elements cannot simply be moved: their scales would have to move along, or change."""
    x, out = types.input(0), types.output
    if x.quantization != out.quantization:
        return "its result and its operand have different quantisation parameters"
    return "it is quantised per axis" if x.quantization is not None and not x.quantization.per_tensor else None


def only_float32(op: Op, types: CallTypes) -> str | None:
    """Why an operation is not computed in float32: a tensor has another type."""
    other = [t for t in (*types.inputs, *types.outputs) if t is not None and t.dtype is not DType.FLOAT32]
    return f"a tensor is of type {other[0].dtype.text}, expected f32" if other else None


def only_floats(op: Op, types: CallTypes) -> str | None:
    """Why an operation is not computed in float32 or float64: not all its tensors are of one of these types."""
    dtypes = {t.dtype for t in (*types.inputs, *types.outputs) if t is not None}
    if len(dtypes) == 1 and dtypes <= {DType.FLOAT32, DType.FLOAT64}:
        return None
    return f"tensors are of {' and '.join(sorted(dtype.text for dtype in dtypes))}, expected f32 or f64"


_KINDS: Mapping[str, str] = {
    "hlo.shapes": (
        "HloBroadcastInDim HloClamp HloSlice HloTranspose HloDynamicSlice HloDynamicUpdateSlice "
        "DynamicUpdateSlice HloIota HloPad Dilate"
    ),
    "hlo.convolution": "HloConvolution",
    "vision_audio.interpolation": "Interpolate ResizeBilinear",
    "vision_audio.sampling": "GridSample DeformConv RoiAlign",
    "vision_audio.landmarks": "LandmarksToMatrix TransformLandmarks TransformTensor DenseImageWarp",
    "vision_audio.spectra": "Fourier RFFT RFFT2D AudioSpectrogram Mfcc",
    "products": "HloDotGeneral BatchMatMul FullyConnected Einsum",
    "hlo.gather": "HloGather",
    "hlo.randomness": "HloRngBitGenerator StatelessUniform RandomFrom MultinomialFrom",
    "scatter": "HloScatter ScatterNd ScatterElements SparseToDense UnsortedSegment SegmentSum",
    "reductions": "HloReduce HloReduceWindow ReduceWindow HloSort Reduce ArgReduce",
    "transformer": ("RoPE Attention CachedAttention MaskedAttention StoreTokens MixtureOfExperts HadamardRotation"),
    "norms": "BatchNorm InstanceNorm RmsNorm L2Normalization LocalResponseNormalization Softmax LogSoftmax",
    "elementwise": "Conv2D DepthwiseConv2D Pool2D Binary PRelu LeakyRelu Unary Cast Select",
    "windows": "FromColumns PooledPlaces TransposeConv2D Conv3D",
    "movement": "Gather Slice Split BroadcastTo BroadcastArgs Fill Range PutRow Squeeze ExpandDims",
    "positions": (
        "OneHot GatherElements ReverseSequence MatrixDiag MatrixSetDiag MatrixBandPart ZerosLike ShapeOf Rank "
        "Reshape EmbeddingLookup FakeQuant Bucketize AddN"
    ),
    "recurrent": "RNN BidirectionalRNN GRU SVDF LSTM BidirectionalLSTM BasicLSTM",
}
"""The kinds that each file of this package decomposes. A file is imported when a model has one of them."""


@cache
def places() -> Mapping[str, str]:
    """The file for each kind that has decompositions."""
    return {kind: file for file, kinds in _KINDS.items() for kind in kinds.split()}


def has_decompositions(kind: type[Op]) -> bool:
    """Whether a kind has decompositions, without importing them."""
    return kind.__name__ in places()


_PLAINER = frozenset(("Gather", "Interpolate"))
"""Kinds with decompositions that are plainer than the native form."""


def has_plainer(kind: type[Op]) -> bool:
    """Whether a kind has decompositions that replace even its native form."""
    return kind.__name__ in _PLAINER


def decompositions(kind: type[Op]) -> tuple[Decomposition, ...]:
    """The decompositions of a kind; empty for most kinds."""
    file = places().get(kind.__name__)
    if file is None:
        return ()
    table: Mapping[type[Op], tuple[Decomposition, ...]] = imports.module(f"{__package__}.{file}").DECOMPOSITIONS
    return table.get(kind, ())
