"""How to build a one-operator model for every builtin operator: operands, results and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from model_writer import Options

from onert.ir import Array, DType


@frozen
class Of:
    """An operand of the probed element type; `role` determines its elements."""

    shape: tuple[int, ...]
    constant: bool = False
    role: str = ""


Operand = Of | Array | None
"""An array is a constant of its own type."""
Result = tuple[tuple[int, ...], DType | None]
"""A result's shape, and its type if it differs from the probed one."""


@frozen
class Recipe:
    operands: tuple[Operand, ...]
    results: tuple[Result, ...]
    options: Options | None = None
    ranges: str = ""
    """The operator's fixed range of results: `softmax`, `tanh`, `log_softmax`."""
    growth: float = 1.0
    """Ratio of the results' scale to the operands', chosen so that results do not saturate."""


def of(*shape: int, role: str = "", constant: bool = False) -> Of:
    return Of(shape, constant, role)


def integers(*values: Any) -> Array:
    return np.array(values, np.int32)


def scalar(value: int) -> Array:
    return np.array(value, np.int32)


def _recipe(
    operands: Sequence[Operand], *results: Any, options: Options | None = None, ranges: str = "", growth: float = 1.0
) -> Recipe:
    made = tuple(r if isinstance(r[-1], DType) or r[-1] is None else (r, None) for r in results)
    return Recipe(tuple(operands), made, options, ranges, growth)


X = (2, 3, 4)
IMAGE = (1, 4, 6, 4)
_POOL = {"padding": 0, "strideW": 2, "strideH": 1, "filterWidth": 2, "filterHeight": 3}
_STRIDES = {"padding": 0, "strideW": 2, "strideH": 1}
_SPATIAL = {"padding": 0, "strideD": 1, "strideW": 1, "strideH": 2}
_UNTYPED = (
    "FLOOR",
    "LOGISTIC",
    "RELU",
    "RELU_N1_TO_1",
    "RELU6",
    "RELU_0_TO_1",
    "TANH",
    "SIN",
    "LOG",
    "SQRT",
    "RSQRT",
    "CEIL",
    "ELU",
    "ROUND",
)
_UNARY = ("EXP", "NEG", "SQUARE", "ZEROS_LIKE", "ABS", "COS", "HARD_SWISH", "GELU", "SIGN")
_BINARY = (
    "ADD",
    "MUL",
    "SUB",
    "DIV",
    "FLOOR_DIV",
    "FLOOR_MOD",
    "SQUARED_DIFFERENCE",
    "POW",
    "BITWISE_XOR",
    "RIGHT_SHIFT",
)
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
_RANGES = {"LOGISTIC": "softmax", "TANH": "tanh"}
_ROLES = {
    "LOG": "positive",
    "SQRT": "positive",
    "RSQRT": "positive",
    "DIV": "divisor",
    "FLOOR_DIV": "divisor",
    "FLOOR_MOD": "divisor",
    "POW": "power",
    "RIGHT_SHIFT": "power",
}


def _table(code: str) -> str:
    names = {"EXP": "Exp", "ZEROS_LIKE": "ZerosLike", "HARD_SWISH": "HardSwish"}
    return names.get(code, "".join(part.title() for part in code.split("_"))) + "Options"


def _empty(code: str) -> Options:
    return (_table(code), {})


def _elementwise() -> dict[str, Recipe]:
    found = {}
    for code in _UNTYPED:
        found[code] = _recipe([of(*X, role=_ROLES.get(code, ""))], X, ranges=_RANGES.get(code, ""))
    for code in _UNARY:
        found[code] = _recipe([of(*X)], X, options=_empty(code))
    for code in _BINARY:
        role = _ROLES.get(code, "")
        first = of(*X, role="positive" if role == "power" else "")
        found[code] = _recipe([first, of(3, 4, role=role)], X, options=_empty(code))
    for code in _COMPARISONS:
        found[code] = _recipe([of(*X), of(*X, role="alike")], (X, DType.BOOL), options=_empty(code))
    for code in ("MAXIMUM", "MINIMUM"):
        found[code] = _recipe([of(*X), of(*X)], X, options=("MaximumMinimumOptions", {}))
    for code in ("LOGICAL_AND", "LOGICAL_OR"):
        found[code] = _recipe([of(*X), of(*X)], X, options=_empty(code))
    found["LOGICAL_NOT"] = _recipe([of(*X)], X, options=_empty("LOGICAL_NOT"))
    found["LEAKY_RELU"] = _recipe([of(*X)], X, options=("LeakyReluOptions", {"alpha": 0.3}))
    found["PRELU"] = _recipe([of(1, 2, 2, 3), of(1, 1, 3, constant=True)], (1, 2, 2, 3))
    found["ADD_N"] = _recipe([of(*X), of(*X), of(*X)], X, options=("AddNOptions", {}))
    condition = np.arange(24).reshape(X) % 3 == 0
    found["SELECT"] = _recipe([condition, of(*X), of(*X)], X, options=("SelectOptions", {}))
    found["SELECT_V2"] = _recipe([condition, of(*X), of(1, 4)], X, options=("SelectV2Options", {}))
    found["DEQUANTIZE"] = _recipe([of(*X)], (X, DType.FLOAT32), options=("DequantizeOptions", {}))
    found["QUANTIZE"] = _recipe(
        [np.linspace(-9, 9, 24, dtype=np.float32).reshape(X)], X, options=("QuantizeOptions", {})
    )
    return found


def _filters() -> dict[str, Recipe]:
    weights, bias = "weights", "bias"
    return {
        "CONV_2D": _recipe(
            [of(*IMAGE), of(3, 2, 2, 4, role=weights, constant=True), of(3, role=bias, constant=True)],
            (1, 4, 3, 3),
            options=("Conv2DOptions", _STRIDES),
            growth=6.0,
        ),
        "DEPTHWISE_CONV_2D": _recipe(
            [of(*IMAGE), of(1, 2, 2, 4, role=weights, constant=True), of(4, role=bias, constant=True)],
            (1, 4, 3, 4),
            options=("DepthwiseConv2DOptions", {**_STRIDES, "depthMultiplier": 1}),
            growth=6.0,
        ),
        "FULLY_CONNECTED": _recipe(
            [of(2, 5), of(3, 5, role=weights, constant=True), of(3, role=bias, constant=True)],
            (2, 3),
            options=("FullyConnectedOptions", {}),
            growth=6.0,
        ),
        "TRANSPOSE_CONV": _recipe(
            [integers(1, 4, 12, 3), of(3, 2, 2, 4, role=weights, constant=True), of(*IMAGE)],
            (1, 4, 12, 3),
            options=("TransposeConvOptions", _STRIDES),
            growth=6.0,
        ),
        "CONV_3D": _recipe(
            [of(1, 2, 4, 3, 2), of(1, 2, 2, 2, 3, constant=True)], (1, 2, 2, 3, 3), options=("Conv3DOptions", _SPATIAL)
        ),
        "BATCH_MATMUL": _recipe([of(2, 3, 4), of(2, 4, 5)], (2, 3, 5), options=("BatchMatMulOptions", {}), growth=40.0),
    }


def _windows() -> dict[str, Recipe]:
    pool = ("Pool2DOptions", _POOL)
    resize = {"alignCorners": False, "halfPixelCenters": True}
    return {
        **{
            code: _recipe([of(*IMAGE)], (1, 4, 3, 4), options=pool)
            for code in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
        },
        "L2_NORMALIZATION": _recipe([of(*X)], X, options=("L2NormOptions", {}), ranges="tanh"),
        "LOCAL_RESPONSE_NORMALIZATION": _recipe(
            [of(*IMAGE)],
            IMAGE,
            options=("LocalResponseNormalizationOptions", {"radius": 2, "bias": 1.0, "alpha": 0.5, "beta": 0.5}),
        ),
        "SOFTMAX": _recipe([of(2, 5)], (2, 5), options=("SoftmaxOptions", {"beta": 1.0}), ranges="softmax"),
        "LOG_SOFTMAX": _recipe([of(2, 5)], (2, 5), options=("LogSoftmaxOptions", {}), ranges="log_softmax"),
        "RESIZE_BILINEAR": _recipe(
            [of(*IMAGE), integers(6, 9)], (1, 6, 9, 4), options=("ResizeBilinearOptions", resize)
        ),
        "RESIZE_NEAREST_NEIGHBOR": _recipe(
            [of(*IMAGE), integers(6, 9)], (1, 6, 9, 4), options=("ResizeNearestNeighborOptions", resize)
        ),
        "CUMSUM": _recipe([of(*X), scalar(1)], X, options=("CumsumOptions", {})),
    }


def _reductions() -> dict[str, Recipe]:
    names = ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL")
    found = {
        code: _recipe(
            [of(*X, role="small" if code == "REDUCE_PROD" else ""), integers(1)],
            (2, 4),
            options=("ReducerOptions", {}),
            growth=2.0 if code == "SUM" else 1.0,
        )
        for code in names
    }
    for code in ("ARG_MAX", "ARG_MIN"):
        found[code] = _recipe([of(*X), scalar(2)], ((2, 3), DType.INT32), options=(_table(code), {"outputType": 2}))
    found["SEGMENT_SUM"] = _recipe([of(4, 3), integers(0, 0, 1, 2)], (3, 3), options=("SegmentSumOptions", {}))
    for code in ("PROD", "MAX", "SUM", "MIN"):
        found[f"UNSORTED_SEGMENT_{code}"] = _recipe(
            [of(4, 3, role="small"), integers(2, 0, 2, 1), integers(4)],
            (4, 3),
            options=(f"UnsortedSegment{code.title()}Options", {}),
        )
    return found


def _shapes() -> dict[str, Recipe]:
    strided = {"beginMask": 1, "endMask": 2, "shrinkAxisMask": 0}
    return {
        "RESHAPE": _recipe([of(*X), integers(4, 6)], (4, 6), options=("ReshapeOptions", {})),
        "SQUEEZE": _recipe([of(1, 3, 1, 2)], (3, 1, 2), options=("SqueezeOptions", {"squeezeDims": [0]})),
        "EXPAND_DIMS": _recipe([of(*X), scalar(1)], (2, 1, 3, 4), options=("ExpandDimsOptions", {})),
        "SHAPE": _recipe([of(*X)], ((3,), DType.INT32), options=("ShapeOptions", {"outType": 2})),
        "RANK": _recipe([of(*X)], ((), DType.INT32), options=("RankOptions", {})),
        "DEPTH_TO_SPACE": _recipe([of(*IMAGE)], (1, 8, 12, 1), options=("DepthToSpaceOptions", {"blockSize": 2})),
        "SPACE_TO_DEPTH": _recipe([of(*IMAGE)], (1, 2, 3, 16), options=("SpaceToDepthOptions", {"blockSize": 2})),
        "BATCH_TO_SPACE_ND": _recipe(
            [of(4, 2, 3, 2), integers(2, 2), integers([0, 1], [0, 0])],
            (1, 3, 6, 2),
            options=("BatchToSpaceNDOptions", {}),
        ),
        "SPACE_TO_BATCH_ND": _recipe(
            [of(1, 3, 6, 2), integers(2, 2), integers([0, 1], [0, 0])],
            (4, 2, 3, 2),
            options=("SpaceToBatchNDOptions", {}),
        ),
        "TRANSPOSE": _recipe([of(*X), integers(2, 0, 1)], (4, 2, 3), options=("TransposeOptions", {})),
        "STRIDED_SLICE": _recipe(
            [of(*X), integers(1, 0, 3), integers(2, 1, 0), integers(1, 2, -1)],
            (2, 2, 3),
            options=("StridedSliceOptions", strided),
        ),
        "SLICE": _recipe([of(*X), integers(0, 1, 1), integers(2, 2, -1)], (2, 2, 3), options=("SliceOptions", {})),
        "TILE": _recipe([of(*X), integers(1, 2, 2)], (2, 6, 8), options=("TileOptions", {})),
        "BROADCAST_TO": _recipe([of(3, 1), integers(2, 3, 4)], X, options=("BroadcastToOptions", {})),
        "FILL": _recipe([integers(2, 3), of(constant=True)], (2, 3), options=("FillOptions", {})),
        "PAD": _recipe([of(*X), integers([0, 1], [1, 0], [2, 1])], (3, 4, 7), options=("PadOptions", {})),
        "PADV2": _recipe(
            [of(*X), integers([0, 1], [1, 0], [2, 1]), of(constant=True)], (3, 4, 7), options=("PadV2Options", {})
        ),
        "MIRROR_PAD": _recipe(
            [of(*X), integers([0, 1], [1, 0], [2, 1])], (3, 4, 7), options=("MirrorPadOptions", {"mode": 0})
        ),
        "REVERSE_V2": _recipe([of(*X), integers(1)], X, options=("ReverseV2Options", {})),
        "REVERSE_SEQUENCE": _recipe(
            [of(*X), integers(1, 3)], X, options=("ReverseSequenceOptions", {"seqDim": 1, "batchDim": 0})
        ),
        "MATRIX_DIAG": _recipe([of(2, 3)], (2, 3, 3), options=("MatrixDiagOptions", {})),
        "MATRIX_SET_DIAG": _recipe([of(2, 3, 4), of(2, 3)], (2, 3, 4), options=("MatrixSetDiagOptions", {})),
    }


def _joined() -> dict[str, Recipe]:
    return {
        "CONCATENATION": _recipe([of(*X), of(2, 1, 4)], (2, 4, 4), options=("ConcatenationOptions", {"axis": 1})),
        "PACK": _recipe([of(3, 4), of(3, 4)], (3, 2, 4), options=("PackOptions", {"valuesCount": 2, "axis": 1})),
        "UNPACK": _recipe([of(2, 3)], (3,), (3,), options=("UnpackOptions", {"num": 2, "axis": 0})),
        "SPLIT": _recipe([scalar(2), of(*X)], (2, 3, 2), (2, 3, 2), options=("SplitOptions", {"numSplits": 2})),
        "SPLIT_V": _recipe(
            [of(*X), integers(1, 3), scalar(2)], (2, 3, 1), (2, 3, 3), options=("SplitVOptions", {"numSplits": 2})
        ),
        "GATHER": _recipe([of(*X), integers(2, 0)], (2, 2, 4), options=("GatherOptions", {"axis": 1})),
        "GATHER_ND": _recipe([of(*X), integers([1, 2], [0, 0])], (2, 4), options=("GatherNdOptions", {})),
        "EMBEDDING_LOOKUP": _recipe([integers(2, 0, 1), of(3, 4, constant=True)], (3, 4)),
        "SCATTER_ND": _recipe([integers([4], [1]), of(2, 3), integers(6, 3)], (6, 3), options=("ScatterNdOptions", {})),
        "ONE_HOT": _recipe(
            [integers(0, 2, 5), scalar(4), of(constant=True), of(constant=True)],
            (3, 4),
            options=("OneHotOptions", {"axis": -1}),
        ),
        "TOPK_V2": _recipe([of(3, 6), scalar(2)], (3, 2), ((3, 2), DType.INT32), options=("TopKV2Options", {})),
        "WHERE": _recipe([of(3, 4, role="mask")], ((12, 2), DType.INT64), options=("WhereOptions", {})),
        "DYNAMIC_UPDATE_SLICE": _recipe(
            [of(*X), of(1, 2, 2), integers(1, 1, 9)], X, options=("DynamicUpdateSliceOptions", {})
        ),
    }


RECIPES: Mapping[str, Recipe] = {
    **_elementwise(),
    **_filters(),
    **_windows(),
    **_reductions(),
    **_shapes(),
    **_joined(),
}
