"""Kinds of operations with native code, directly or by decomposition, and whole models that run without the reference
backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from cases import all_cases
from cases.case import Case
from formulas import floats
from llvm.natively import assert_close, evaluated, subgraph_of, why_not
from model_writer import Options
from stablehlo_models import Body, Result, convolution, gather, hlo_model

import onert
from onert.ir import Array, DType, Package, RuleError, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.attention import Attention, RoPE
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.experts import MixtureOfExperts
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.gather import OneHot
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.norm import BatchNorm, InstanceNorm, LocalResponseNormalization, RmsNorm
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.stablehlo.gather import HloGather
from onert.ir.ops.stablehlo.products import HloConvolution, HloDotGeneral, Places
from onert.ir.ops.stablehlo.shapes_and_elements import HloBroadcastInDim, HloDynamicUpdateSlice, HloIota, HloSlice
from onert.ir.ops.stablehlo.sliding import Sliding
from onert.ir.ops.stablehlo.with_bodies import HloReduce, HloReduceWindow

F32 = DType.FLOAT32

NATIVE = """
AddN ArgReduce Attention BasicLSTM BatchMatMul BatchNorm BatchToSpaceND BidirectionalLSTM BidirectionalRNN Binary
Bitcast BroadcastTo Bucketize Cast Comparison Concat Conv2D Conv3D Copy DepthToSpace DepthwiseConv2D
DetectionPostProcess Dilate DynamicUpdateSlice Einsum EmbeddingLookup ExpandDims FakeQuant Fill FullyConnected GRU
Gather GatherNd HloBroadcastInDim HloClamp HloConvolution HloDotGeneral HloDynamicSlice HloDynamicUpdateSlice
HloGather HloIota HloPad HloReduce HloReduceWindow HloScatter HloSlice HloTranspose InstanceNorm L2Normalization LSTM
LeakyRelu LocalResponseNormalization LogSoftmax MatrixBandPart MatrixDiag MatrixSetDiag MirrorPad MixtureOfExperts
OneHot Overwritten OverwrittenSlices PRelu Pack Pad Pool2D PutRow Quantize RFFT2D RNN Rank Reduce ReduceWindow Reshape
ResizeBilinear ResizeNearestNeighbor Reverse ReverseSequence RmsNorm RoPE SVDF ScatterNd SegmentSum Select ShapeOf
Slice Softmax SpaceToBatchND SpaceToDepth SparseToDense Split SplitV Squeeze StridedSlice TanhOfSum Tile Transpose
TransposeConv2D TransposeConv3D TransposeConvBias2D Unary Unpack UnsortedSegment ZerosLike
"""
"""The kinds of operations that have native code in some case, directly or by decomposition."""


def _by_kind() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in all_cases():
        found.setdefault(type(case.op).__name__, []).append(case)
    return found


CASES = _by_kind()


def _reasons(case: Case) -> Iterator[str | None]:
    """Why a case has no native code: with its own constants, with integers constant, and with all but the first."""
    given = [(i, a) for i, a in enumerate(case.inputs) if a is not None]
    integers = tuple(i for i, a in given if a.ndim <= 1 and a.dtype.kind in "iu")
    for constant in (case.constant, integers, tuple(i for i, _ in given[1:])):
        try:
            yield why_not(subgraph_of(case, constant))
        except RuleError as error:
            yield str(error)


@pytest.mark.parametrize("kind", NATIVE.split())
def test_a_kind_of_operation_has_native_code(kind: str) -> None:
    assert any(reason is None for case in CASES[kind] for reason in _reasons(case))


# ---- whole models


def _run_natively(package: Package, inputs: Sequence[Array]) -> list[Array]:
    """The results of a run in which no step uses the reference backend."""
    program = onert.compile(package)
    assert {step.backend for step in program.routines[0].steps} <= {"llvm"}
    return list(onert.Execution(program).run(inputs).values())


def _package(graph: Subgraph, function: BinaryKind | None) -> Package:
    """A model of a graph, and of the function that its reductions refer to."""
    if function is None:
        return Package((Subgraphs((graph,)),), "model")
    b = Builder("function")
    elements = [b.input(TensorType(F32, ())) for _ in range(2)]
    return Package((Subgraphs((graph, b.subgraph([b.add(Binary(function), *elements)]))),), "model")


X = floats((2, 3, 4))
IMAGE = floats((1, 5, 6, 2))
SCALARS = [np.array(at, np.int32) for at in (1, 9, -3)]
BODY: Body = ("STABLEHLO_ADD", F32)

STABLEHLO: list[tuple[str, Sequence[Array], Result, Options | None, Body | None, Sequence[int]]] = [
    ("STABLEHLO_ABS", [X], (F32, X.shape), None, None, ()),
    ("STABLEHLO_ADD", [X, X], (F32, X.shape), None, None, ()),
    ("STABLEHLO_RESHAPE", [X], (F32, (6, 4)), None, None, ()),
    ("STABLEHLO_CLAMP", [np.float32(-1), X, np.float32(1)], (F32, X.shape), None, None, ()),
    ("STABLEHLO_CONCATENATE", [X, X], (F32, (2, 6, 4)), ("StablehloConcatenateOptions", {"dimension": 1}), None, ()),
    (
        "STABLEHLO_BROADCAST_IN_DIM",
        [X],
        (F32, (3, 5, 2, 4)),
        ("StablehloBroadcastInDimOptions", {"broadcastDimensions": [2, 0, 3]}),
        None,
        (),
    ),
    (
        "STABLEHLO_SLICE",
        [X],
        (F32, (2, 2, 2)),
        ("StablehloSliceOptions", {"startIndices": [0, 1, 0], "limitIndices": [2, 3, 4], "strides": [1, 1, 3]}),
        None,
        (),
    ),
    (
        "STABLEHLO_TRANSPOSE",
        [X],
        (F32, (4, 2, 3)),
        ("StablehloTransposeOptions", {"permutation": [2, 0, 1]}),
        None,
        (),
    ),
    ("STABLEHLO_IOTA", [], (DType.INT32, (2, 3)), ("StablehloIotaOptions", {"iotaDimension": 1}), None, ()),
    (
        "STABLEHLO_PAD",
        [X, np.float32(7)],
        (F32, (1, 9, 4)),
        (
            "StablehloPadOptions",
            {"edgePaddingLow": [-1, 1, 0], "edgePaddingHigh": [0, 1, 0], "interiorPadding": [0, 2, 0]},
        ),
        None,
        (),
    ),
    (
        "STABLEHLO_DYNAMIC_SLICE",
        [X, *SCALARS],
        (F32, (1, 2, 2)),
        ("StablehloDynamicSliceOptions", {"sliceSizes": [1, 2, 2]}),
        None,
        (),
    ),
    ("STABLEHLO_DYNAMIC_UPDATE_SLICE", [X, X[:1] + 9, *SCALARS], (F32, X.shape), None, None, ()),
    (
        "STABLEHLO_GATHER",
        [X, np.int64([[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]])],
        (F32, (2, 3, 2, 4)),
        gather([2, 3], [0], [1, 0], 2, [1, 2, 4]),
        None,
        (),
    ),
    (
        "STABLEHLO_SCATTER",
        [X, np.int32([[0], [1], [0], [5]]), floats((4, 3, 4), 11)],
        (F32, X.shape),
        (
            "StablehloScatterOptions",
            {
                "updateWindowDims": [1, 2],
                "insertedWindowDims": [0],
                "scatterDimsToOperandDims": [0],
                "indexVectorDim": 1,
                "updateComputationSubgraphIndex": 1,
            },
        ),
        BODY,
        (),
    ),
    (
        "STABLEHLO_DOT_GENERAL",
        [X, floats((2, 5, 4), 11)],
        (F32, (2, 3, 5)),
        (
            "StablehloDotGeneralOptions",
            {
                "lhsBatchingDimensions": [0],
                "rhsBatchingDimensions": [0],
                "lhsContractingDimensions": [2],
                "rhsContractingDimensions": [2],
            },
        ),
        None,
        (),
    ),
    (
        "STABLEHLO_CONVOLUTION",
        [IMAGE, floats((3, 3, 2, 4), 11)],
        (F32, (1, 3, 3, 4)),
        ("StablehloConvolutionOptions", convolution(windowStrides=[2, 2], padding=[1, 1, 1, 1])),
        None,
        (1,),
    ),
    (
        "STABLEHLO_REDUCE",
        [X, np.float32(0.25)],
        (F32, (3,)),
        ("StablehloReduceOptions", {"dimensions": [2, 0], "bodySubgraphIndex": 1}),
        BODY,
        (),
    ),
    (
        "STABLEHLO_REDUCE_WINDOW",
        [IMAGE, np.float32(-9)],
        (F32, (1, 3, 3, 2)),
        (
            "StablehloReduceWindowOptions",
            {
                "windowDimensions": [1, 3, 2, 1],
                "windowStrides": [1, 2, 2, 1],
                "baseDilations": [1, 1, 1, 1],
                "windowDilations": [1, 1, 1, 1],
                "padding": [0, 0, 1, 1, 0, 0, 0, 0],
                "bodySubgraphIndex": 1,
            },
        ),
        ("STABLEHLO_MAXIMUM", F32),
        (1,),
    ),
]


@pytest.mark.parametrize("model", STABLEHLO, ids=[model[0] for model in STABLEHLO])
def test_a_stablehlo_operator_runs_without_the_reference_backend(
    model: tuple[str, Sequence[Array], Result, Options | None, Body | None, Sequence[int]],
) -> None:
    code, inputs, result, options, body, constants = model
    package = onert.load(hlo_model(code, inputs, [result], options, body, constants))
    given = [np.asarray(a) for at, a in enumerate(inputs) if at not in constants]
    expected = onert.Execution(onert.compile(package, backends=("reference",))).run(given)
    assert_close(_run_natively(package, given), list(expected.values()))


def _weights(b: Builder, *shape: int) -> int:
    return b.constant(floats(shape, sum(shape) | 1) / 4)


def _decoder() -> tuple[Subgraph, list[Array]]:
    """A decoder layer as in circle: norms, attention with a cache, and a mixture of experts."""
    b = Builder()
    x = b.input(TensorType(F32, (1, 2, 8)))
    caches = [b.input(TensorType(F32, (1, 6, 2, 4))) for _ in range(2)]
    position = b.input(TensorType(DType.INT32, (1,)))
    angles = floats((1, 2, 4), 11)
    normed = b.add(RmsNorm(), x, b.constant(np.ones(8, np.float32)))
    tables = [b.constant(t.astype(np.float32)) for t in (np.cos(angles), np.sin(angles))]
    weights = [_weights(b, 8, 8) for _ in range(4)]
    mixed, *states = b.add_many(Attention(), normed, *weights, *tables, None, *caches, position)
    x = b.add(Binary(BinaryKind.ADD), x, mixed)
    factors, chosen = b.constant(np.float32([[[1, 0.5]] * 2])), b.constant(np.int32([[[0, 2], [1, -1]]]))
    experts = [_weights(b, 6, 3, 1, 8), _weights(b, 6, 3, 1, 8), _weights(b, 8, 3, 1, 6)]
    y = b.add(MixtureOfExperts(3, 2, 8, 6), x, factors, chosen, *experts, b.constant(np.ones(3, np.float32)))
    return b.subgraph([b.add(Binary(BinaryKind.ADD), x, y), *states]), [
        floats((1, 2, 8)),
        *(floats((1, 6, 2, 4), step) for step in (11, 13)),
        np.int32([3]),
    ]


def _grouped_queries() -> tuple[Subgraph, list[Array]]:
    """Attention as exported from JAX: four query heads, two key and value heads, a cache, a numeric mask."""
    b = Builder()
    x = b.input(TensorType(F32, (1, 1, 8)))
    cache = b.input(TensorType(F32, (6, 1, 2, 4)))
    position = b.input(TensorType(DType.INT32, ()))
    none = b.constant(np.array(0, np.int32))
    query = b.add(HloDotGeneral(F32, (), (), (2,), (0,)), x, _weights(b, 8, 2, 2, 4))
    key = b.add(HloDotGeneral(F32, (), (), (2,), (0,)), x, _weights(b, 8, 2, 4))
    tables = [b.constant(t.astype(np.float32)) for t in (np.sin(floats((4,), 11)), np.cos(floats((4,), 11)))]
    query, key = (b.add(RoPE(), i, *tables) for i in (query, key))
    cache = b.add(HloDynamicUpdateSlice(), cache, key, position, none, none, none)
    scores = b.add(Einsum("bthgd,sbhd->bhgts"), query, cache)
    places = b.add(HloIota(0, DType.INT32, (6,)))
    seen = b.add(Comparison(ComparisonKind.LESS_EQUAL), places, position)
    seen = b.add(HloBroadcastInDim((4,), (1, 2, 2, 1, 6)), seen)
    weights = b.add(Softmax(), b.add(Select(), seen, scores, b.constant(np.float32(-1e9))))
    mixed = b.add(Einsum("bhgts,sbhd->bthgd"), weights, cache)
    out = b.add(HloDotGeneral(F32, (), (), (2, 3, 4), (0, 1, 2)), mixed, _weights(b, 2, 2, 4, 8))
    return b.subgraph([out, cache]), [floats((1, 1, 8)), floats((6, 1, 2, 4), 13), np.array(4, np.int32)]


def _encoder() -> tuple[Subgraph, list[Array]]:
    """Word embeddings, a norm written with means and variances, a layer, and the classes of the first word."""
    b = Builder()
    words = b.input(TensorType(DType.INT64, (1, 3)))
    x = b.add(HloGather((2,), (0,), (0,), 2, (1, 8)), _weights(b, 10, 8), words)
    zero = b.constant(np.array(0, np.float32))
    total = b.add(HloReduce(1, (2,), BinaryKind.ADD), x, zero)
    mean = b.add(Binary(BinaryKind.DIV), total, b.constant(np.array(8, np.float32)))
    centred = b.add(Binary(BinaryKind.SUB), x, b.add(HloBroadcastInDim((0, 1), (1, 3, 8)), mean))
    square = b.add(HloReduce(1, (2,), BinaryKind.ADD), b.add(Unary(UnaryKind.SQUARE), centred), zero)
    root = b.add(Unary(UnaryKind.RSQRT), b.add(Binary(BinaryKind.ADD), square, b.constant(np.array(1e-5, np.float32))))
    normed = b.add(Binary(BinaryKind.MUL), centred, b.add(HloBroadcastInDim((0, 1), (1, 3, 8)), root))
    first = b.add(HloSlice((0, 0, 0), (1, 1, 8), (1, 1, 1)), normed)
    classes = b.add(FullyConnected(), first, _weights(b, 4, 8))
    hot = b.add(
        OneHot(), words, b.constant(np.array(10, np.int32)), b.constant(np.float32(1)), b.constant(np.float32(0))
    )
    return b.subgraph([b.add(Softmax(), classes), hot]), [np.int64([[1, 9, 3]])]


def _images() -> tuple[Subgraph, list[Array]]:
    """Channels-first convolutions, pooling, and three kinds of norms."""
    b = Builder()
    x = b.input(TensorType(F32, (1, 3, 8, 8)))
    first, last = Places(0, 1, (2, 3)), Places(0, 3, (1, 2))
    one, still = (1, 1), (False, False)
    filters = Places(1, 0, (2, 3))
    grouped = HloConvolution(F32, first, filters, last, Sliding(one, one, one, one, one), still)
    x = b.add(grouped, x, _weights(b, 4, 3, 3, 3))
    x = b.add(BatchNorm(), x, *(b.constant(np.abs(floats((4,), step)) + 1) for step in (7, 11, 13, 17)))
    low = b.constant(np.array(-np.inf, np.float32))
    halved = Sliding((1, 2, 2, 1), (0,) * 4, (0,) * 4, (1,) * 4, (1,) * 4)
    windows = HloReduceWindow(1, (1, 2, 2, 1), halved, BinaryKind.MAXIMUM)
    x = b.add(windows, x, low)
    alone = HloConvolution(F32, last, filters, last, Sliding(one, one, one, one, one), still, feature_groups=4)
    x = b.add(alone, x, _weights(b, 4, 1, 3, 3))
    x = b.add(InstanceNorm(), x, b.constant(np.float32([1])), b.constant(np.float32([0])))
    x = b.add(LocalResponseNormalization(1, 1.0, 0.5, 0.75), x)
    apart = HloConvolution(F32, last, filters, last, Sliding(one, one, (2, 2), (2, 2), one), still)
    return b.subgraph([b.add(apart, x, _weights(b, 2, 4, 3, 3))]), [floats((1, 3, 8, 8))]


MODELS = {
    "decoder": (_decoder, None),
    "grouped queries": (_grouped_queries, None),
    "encoder": (_encoder, BinaryKind.ADD),
    "images": (_images, BinaryKind.MAXIMUM),
}


@pytest.mark.parametrize("model", MODELS)
def test_a_model_runs_without_the_reference_backend(model: str) -> None:
    build, function = MODELS[model]
    graph, inputs = build()
    assert_close(_run_natively(_package(graph, function), inputs), evaluated(graph, inputs), 1e-4)
