"""Operators with operands for shapes, axes or counts, and variants of these operands in unusual ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from model_writer import Model

from onert.ir import Array, DType


@frozen(eq=False)
class Call:
    """One operator on arrays; `auxiliary` are the positions of the operands whose rank varies."""

    code: str
    operands: tuple[Array | None, ...]
    auxiliary: tuple[int, ...]
    options: tuple[str, Mapping[str, Any]] | None = None
    results: tuple[DType, ...] = (DType.FLOAT32,)
    note: str = ""
    constant: frozenset[int] = field(default=frozenset())

    def __str__(self) -> str:
        shapes = " ".join("-" if a is None else str(list(a.shape)) for a in self.operands)
        return f"{self.code} {self.note} {shapes} constant {sorted(self.constant)}"


def floats(*shape: int) -> Array:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def one(value: int) -> Array:
    return np.array(value, np.int32)


_X = floats(2, 3, 4)
_IMAGE = floats(1, 4, 5, 3)
_WINDOW = {"padding": 0, "strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}

CALLS = [
    Call("RESHAPE", (_X, ints(4, 6)), (1,), ("ReshapeOptions", {})),
    Call("RESHAPE", (_X, ints(4, -1)), (1,), ("ReshapeOptions", {}), note="with -1"),
    Call("RESHAPE", (_X, ints(4, 6)), (1,), ("ReshapeOptions", {"newShape": [4, 6]}), note="with options"),
    Call("BROADCAST_TO", (floats(1, 3), ints(2, 3)), (1,), None),
    Call("FILL", (ints(2, 3), floats(1).reshape(())), (0, 1), ("FillOptions", {})),
    Call("TILE", (_X, ints(1, 2, 1)), (1,), ("TileOptions", {})),
    Call("TILE", (floats(3), ints(2)), (1,), ("TileOptions", {}), note="of a vector"),
    Call("PAD", (floats(2, 3), ints(1, 0, 0, 2).reshape(2, 2)), (1,), ("PadOptions", {})),
    Call("PAD", (floats(3), ints(1, 2).reshape(1, 2)), (1,), ("PadOptions", {}), note="of a vector"),
    Call("PADV2", (floats(3), ints(1, 2).reshape(1, 2), floats(1)), (1, 2), ("PadV2Options", {})),
    Call("MIRROR_PAD", (floats(3, 4), ints(1, 0, 0, 2).reshape(2, 2)), (1,), ("MirrorPadOptions", {})),
    Call("SLICE", (_X, ints(0, 1, 2), ints(1, 2, -1)), (1, 2), ("SliceOptions", {})),
    Call("STRIDED_SLICE", (_X, ints(0, 1, 0), ints(2, 3, 4), ints(1, 1, 2)), (1, 2, 3), ("StridedSliceOptions", {})),
    Call("TRANSPOSE", (_X, ints(2, 0, 1)), (1,), ("TransposeOptions", {})),
    *(
        Call(code, (_X, ints(*axes)), (1,), ("ReducerOptions", {"keepDims": keep}), note=f"{axes} {keep}")
        for code in ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_PROD")
        for axes in ((1,), (0, 2))
        for keep in (False, True)
    ),
    Call("REDUCE_ANY", (_X > 3, ints(1)), (1,), ("ReducerOptions", {}), (DType.BOOL,)),
    Call("EXPAND_DIMS", (_X, one(1)), (1,), ("ExpandDimsOptions", {})),
    Call("SPLIT", (one(2), _X), (0,), ("SplitOptions", {"numSplits": 2}), (DType.FLOAT32,) * 2),
    Call("SPLIT_V", (_X, ints(1, 3), one(2)), (1, 2), ("SplitVOptions", {"numSplits": 2}), (DType.FLOAT32,) * 2),
    Call(
        "ONE_HOT",
        (ints(0, 2), one(3), floats(1).reshape(()), np.float32(0)),
        (1, 2, 3),
        ("OneHotOptions", {"axis": -1}),
    ),
    Call("TOPK_V2", (_X, one(2)), (1,), ("TopKV2Options", {}), (DType.FLOAT32, DType.INT32)),
    Call("RESIZE_BILINEAR", (_IMAGE, ints(2, 3)), (1,), ("ResizeBilinearOptions", {})),
    Call("RESIZE_NEAREST_NEIGHBOR", (_IMAGE, ints(2, 3)), (1,), ("ResizeNearestNeighborOptions", {})),
    Call("GATHER", (_X, ints(1, 0)), (1,), ("GatherOptions", {"axis": 1})),
    Call("GATHER_ND", (_X, ints(1, 0)), (1,), ("GatherNdOptions", {})),
    Call("ARG_MAX", (_X, one(1)), (1,), ("ArgMaxOptions", {"outputType": 2}), (DType.INT32,)),
    Call("ARG_MIN", (_X, one(1)), (1,), ("ArgMinOptions", {"outputType": 2}), (DType.INT32,)),
    Call("RANGE", (one(1), one(7), one(2)), (0, 1, 2), ("RangeOptions", {}), (DType.INT32,)),
    Call("CUMSUM", (_X, one(1)), (1,), ("CumsumOptions", {})),
    Call("REVERSE_V2", (_X, ints(1)), (1,), ("ReverseV2Options", {})),
    Call("REVERSE_SEQUENCE", (_X, ints(2, 1)), (1,), ("ReverseSequenceOptions", {"seqDim": 1, "batchDim": 0})),
    Call(
        "SPACE_TO_BATCH_ND",
        (_IMAGE[:, :, :4], ints(2, 2), ints(0, 0, 0, 0).reshape(2, 2)),
        (1, 2),
        ("SpaceToBatchNDOptions", {}),
    ),
    Call(
        "BATCH_TO_SPACE_ND",
        (floats(4, 2, 2, 1), ints(2, 2), ints(0, 0, 0, 0).reshape(2, 2)),
        (1, 2),
        ("BatchToSpaceNDOptions", {}),
    ),
    Call("SCATTER_ND", (ints(1, 2).reshape(2, 1), floats(2), ints(4)), (2,), ("ScatterNdOptions", {})),
    Call(
        "SPARSE_TO_DENSE", (ints(1, 2), ints(4), floats(2), np.float32(0)), (0, 1, 2, 3), ("SparseToDenseOptions", {})
    ),
    Call("BROADCAST_ARGS", (ints(2, 1), ints(1, 3)), (0, 1), None, (DType.INT32,)),
    Call("DYNAMIC_UPDATE_SLICE", (_X, floats(1, 2, 2), ints(0, 1, 1)), (2,), ("DynamicUpdateSliceOptions", {})),
    Call("EMBEDDING_LOOKUP", (ints(1, 0), floats(3, 4)), (0, 1), None),
    Call("SEGMENT_SUM", (floats(3, 2), ints(0, 0, 1)), (1,), ("SegmentSumOptions", {})),
    Call("UNSORTED_SEGMENT_SUM", (floats(3, 2), ints(0, 1, 0), one(2)), (1, 2), ("UnsortedSegmentSumOptions", {})),
    Call("RFFT2D", (floats(4, 4), ints(4, 4)), (1,), ("Rfft2dOptions", {}), (DType.COMPLEX64,)),
    Call("CONV_2D", (_IMAGE, floats(2, 1, 1, 3), floats(2)), (0, 1, 2), ("Conv2DOptions", _WINDOW)),
    Call(
        "DEPTHWISE_CONV_2D",
        (_IMAGE, floats(1, 2, 2, 3), floats(3)),
        (0, 1, 2),
        ("DepthwiseConv2DOptions", {**_WINDOW, "depthMultiplier": 1}),
    ),
    Call(
        "TRANSPOSE_CONV",
        (ints(1, 4, 5, 2), floats(2, 1, 1, 3), _IMAGE, floats(2)),
        (0, 3),
        ("TransposeConvOptions", {"padding": 0, "strideW": 1, "strideH": 1}),
    ),
    Call("FULLY_CONNECTED", (floats(2, 4), floats(3, 4), floats(3)), (0, 1, 2), ("FullyConnectedOptions", {})),
    Call(
        "FULLY_CONNECTED",
        (floats(2, 4), floats(3, 4), floats(3)),
        (0, 2),
        ("FullyConnectedOptions", {"keepNumDims": True}),
        note="kept",
    ),
    Call("PRELU", (_IMAGE - 30, floats(3)), (0, 1), None),
    Call("SELECT", (_X > 5, _X, -_X), (0,), ("SelectOptions", {})),
    Call("SELECT_V2", (np.array(True), _X, -_X), (0,), ("SelectV2Options", {})),
    Call("SQUEEZE", (floats(1, 3, 1),), (), ("SqueezeOptions", {})),
    Call("L2_NORMALIZATION", (floats(2, 3),), (0,), ("L2NormOptions", {})),
    Call("SOFTMAX", (floats(2, 3),), (0,), ("SoftmaxOptions", {"beta": 1.0})),
    Call("LOG_SOFTMAX", (floats(2, 3),), (0,), ("LogSoftmaxOptions", {})),
    Call("BATCH_MATMUL", (floats(2, 3), floats(3, 4)), (0, 1), ("BatchMatMulOptions", {})),
    Call("SPACE_TO_DEPTH", (_IMAGE[:, :, :4],), (0,), ("SpaceToDepthOptions", {"blockSize": 2})),
    Call("UNIQUE", (ints(3, 1, 3),), (0,), ("UniqueOptions", {"idxOutType": 2}), (DType.INT32, DType.INT32)),
    Call("WHERE", (np.array([True, False, True]),), (0,), ("WhereOptions", {}), (DType.INT64,)),
    Call("DILATE", (floats(2, 3), ints(2, 1), np.float32(0)), (1, 2), None),
    Call("MATRIX_DIAG", (floats(2, 3),), (0,), ("MatrixDiagOptions", {})),
]
"""Calls with arrays of the usual ranks."""


def shapes_of(array: Array) -> Iterator[tuple[int, ...]]:
    """Other shapes with the same number of elements: a scalar, a vector, a row, a column, a row of rank 3."""
    n = array.size
    shapes = [*([()] if n == 1 else []), (n,), (1, n), (n, 1), (1, 1, n), (1, *array.shape)]
    yield from dict.fromkeys(s for s in shapes if s != array.shape)


def variants(call: Call) -> Iterator[Call]:
    """The call with auxiliary operands in other shapes, each first as constants, then as inputs."""
    arrays = [None if a is None else np.asarray(a) for a in call.operands]
    call = evolve(call, operands=tuple(arrays))
    shaped = [call]
    for i in call.auxiliary:
        array = arrays[i]
        assert array is not None
        for shape in shapes_of(array):
            shaped.append(evolve(call, operands=(*arrays[:i], array.reshape(shape), *arrays[i + 1 :])))
    if len(call.auxiliary) > 1:
        for pick in range(5):
            moved = list(arrays)
            for i in call.auxiliary:
                array = arrays[i]
                assert array is not None
                shapes = list(shapes_of(array))
                moved[i] = array.reshape(shapes[min(pick, len(shapes) - 1)])
            shaped.append(evolve(call, operands=tuple(moved)))
    every = frozenset(i for i, a in enumerate(arrays) if a is not None)
    data = next((i for i in sorted(every) if i not in call.auxiliary), min(every))
    for found in shaped:
        yield evolve(found, constant=every - {data})
        if call.auxiliary:
            yield found


def model_of(call: Call) -> bytes:
    model = Model()
    graph = model.graph()
    operands = []
    for i, array in enumerate(call.operands):
        if array is None:
            operands.append(-1)
            continue
        dtype = DType.from_numpy(array.dtype)
        if i in call.constant:
            operands.append(graph.tensor(dtype, array.shape, array))
        else:
            operands.append(graph.input(dtype, array.shape))
    results = [graph.tensor(dtype, ()) for dtype in call.results]
    graph.operator(call.code, operands, results, call.options)
    graph.outputs(*results)
    return model.done()


def inputs_of(call: Call) -> Sequence[Array]:
    return [a for i, a in enumerate(call.operands) if a is not None and i not in call.constant]
