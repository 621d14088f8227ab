"""Arithmetic operations equal LiteRT's reference kernels: integers bit for bit, floats within a tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import compute_trials as trials
import litert_peer as litert
import numpy as np
import pytest
from cases.case import Case

from onert.ir import DType, Op, evaluate
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding

Written = tuple[str, litert.Options]
"""The operator's code, and its options."""

_CLAMPS = {a: i for i, a in enumerate(Activation)}
_STEPS = {"stride_depth": "strideD", "stride_height": "strideH", "stride_width": "strideW"}
_DILATIONS = {f"dilation_{name}": f"dilation{name[0].upper()}Factor" for name in ("depth", "height", "width")}
_SIZES = {"filter_height": "filterHeight", "filter_width": "filterWidth"}


def _window(op: Any) -> dict[str, Any]:
    """The option fields of a sliding window."""
    names = {**_STEPS, **_DILATIONS, **_SIZES}
    found = {written: getattr(op, name) for name, written in names.items() if hasattr(op, name)}
    found["padding"] = 0 if op.padding is Padding.SAME else 1
    return {**found, "fusedActivationFunction": _CLAMPS[op.activation]}


def _filtered(code: str, table: str) -> Callable[[Case], Written]:
    def write(case: Case) -> Written:
        options = _window(case.op)
        if any(a is not None and a.dtype == np.int16 for a in case.inputs) and case.inputs[-1].dtype == np.int32:
            options["quantizedBiasType"] = 2  # INT32: 32-bit accumulators
        if code == "DEPTHWISE_CONV_2D":
            options["depthMultiplier"] = case.inputs[1].shape[3] // case.inputs[0].shape[3]
        return code, (table, options)

    return write


def _fully_connected(case: Case) -> Written:
    op: Any = case.op
    options = {
        "fusedActivationFunction": _CLAMPS[op.activation],
        "keepNumDims": op.keep_dims,
        "asymmetricQuantizeInputs": op.asymmetric_inputs,
    }
    if case.inputs[0].dtype == np.int16 and case.inputs[2].dtype == np.int32:
        options["quantizedBiasType"] = 2
    return "FULLY_CONNECTED", ("FullyConnectedOptions", options)


def _reduce(case: Case) -> Written:
    op: Any = case.op
    name = op.kind.name
    return name if name in ("MEAN", "SUM") else f"REDUCE_{name}", ("ReducerOptions", {"keepDims": op.keep_dims})


def _arg(case: Case) -> Written:
    op: Any = case.op
    table = f"Arg{op.kind.name.title()}Options"
    return f"ARG_{op.kind.name}", (table, {"outputType": 2 if op.output is DType.INT32 else 4})


def _reduce_window(case: Case) -> Written:
    op: Any = case.op
    return "REDUCE_WINDOW", ("ReduceWindowOptions", {"reduceFunction": list(type(op.kind)).index(op.kind) + 1})


def _pool(case: Case) -> Written:
    op: Any = case.op
    return f"{op.kind.name}_POOL_2D", ("Pool2DOptions", _window(op))


def _plain(code: str, table: str, **fields: str) -> Callable[[Case], Written]:
    """A writer of options whose fields are attributes of the operation."""

    def write(case: Case) -> Written:
        return code, (table, {written: getattr(case.op, name) for written, name in fields.items()})

    return write


_CORNERS = {"alignCorners": "align_corners", "halfPixelCenters": "half_pixel_centers"}
WRITERS: dict[str, Callable[[Case], Written]] = {
    "ArgReduce": _arg,
    "BatchMatMul": _plain("BATCH_MATMUL", "BatchMatMulOptions", adjX="adjoint_x", adjY="adjoint_y"),
    "Conv2D": _filtered("CONV_2D", "Conv2DOptions"),
    "Conv3D": _filtered("CONV_3D", "Conv3DOptions"),
    "CumSum": _plain("CUMSUM", "CumsumOptions", exclusive="exclusive", reverse="reverse"),
    "DepthwiseConv2D": _filtered("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions"),
    "FullyConnected": _fully_connected,
    "L2Normalization": _plain("L2_NORMALIZATION", "L2NormOptions"),
    "LogSoftmax": _plain("LOG_SOFTMAX", "LogSoftmaxOptions"),
    "Pool2D": _pool,
    "RFFT2D": _plain("RFFT2D", "Rfft2dOptions"),
    "Reduce": _reduce,
    "ReduceWindow": _reduce_window,
    "ResizeBilinear": _plain("RESIZE_BILINEAR", "ResizeBilinearOptions", **_CORNERS),
    "ResizeNearestNeighbor": _plain("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions", **_CORNERS),
    "Softmax": _plain("SOFTMAX", "SoftmaxOptions", beta="beta"),
    "TransposeConv2D": _filtered("TRANSPOSE_CONV", "TransposeConvOptions"),
    "TransposeConv3D": _filtered("CONV_3D_TRANSPOSE", "Conv3DOptions"),
}


def _model(case: Case) -> bytes:
    constants = {at: array for at, array in enumerate(case.inputs) if array is not None and at in case.constant}
    code, options = WRITERS[type(case.op).__name__](case)
    return litert.one_operator(code, options, case.types(), constants)


def _check(case: Case) -> None:
    given = [a for at, a in enumerate(case.inputs) if a is not None and at not in case.constant]
    results = evaluate(case.op, case.inputs, case.types())
    for mine, theirs in zip(results, litert.run(_model(case), given), strict=True):
        assert mine.dtype == theirs.dtype
        if mine.dtype.kind in "fc":
            largest = np.abs(theirs).max(initial=1e-30)
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=case.tolerance * largest)
        else:
            np.testing.assert_array_equal(mine, theirs)


def _named(cases: Iterable[Case]) -> list[Any]:
    return [pytest.param(case, id=f"{_label(case.op)} {case.name}") for case in cases]


def _label(op: Op) -> str:
    return op.label


@pytest.mark.parametrize("case", _named(trials.convolutions()))
def test_convolutions_equal_litert(case: Case) -> None:
    _check(case)


@pytest.mark.parametrize("case", _named([*trials.transposed_convolutions(), *trials.spatial_convolutions()]))
def test_transposed_and_3d_convolutions_equal_litert(case: Case) -> None:
    _check(case)


@pytest.mark.parametrize("case", _named(trials.products()))
def test_matrix_products_equal_litert(case: Case) -> None:
    _check(case)


@pytest.mark.parametrize(
    "case", _named([*trials.pools(), *trials.reductions(), *trials.window_reductions(), *trials.scans()])
)
def test_pools_and_reductions_equal_litert(case: Case) -> None:
    _check(case)


@pytest.mark.parametrize("case", _named([*trials.softmaxes(), *trials.resizes()]))
def test_softmaxes_and_resizes_equal_litert(case: Case) -> None:
    _check(case)
