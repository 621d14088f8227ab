"""The expected results of the conformance kit equal those of LiteRT's reference kernels for the same operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import litert_peer as litert
import numpy as np
import pytest
from attrs import evolve
from ops.test_compute_litert import WRITERS

from onert.backend.testing import TRIALS, Trial
from onert.ir import DType, TensorType
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Split
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import Pad, StridedSlice
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary

Written = tuple[str, litert.Options | None]
CLAMPS = {"NONE": 0, "RELU": 1, "RELU6": 3}


def _table(code: str) -> litert.Options:
    name = "".join(part.title() for part in code.split("_"))
    return {"MAXIMUM": "MaximumMinimum", "MINIMUM": "MaximumMinimum"}.get(code, name) + "Options", {}


def _binary(op: Binary) -> Written:
    table, fields = _table(op.kind.name)
    if op.kind.name not in ("MAXIMUM", "MINIMUM"):
        fields = {"fusedActivationFunction": CLAMPS[op.activation.name]}
    return op.kind.name, (table, fields)


def _unary(op: Unary) -> Written:
    code = op.kind.name
    return code, _table(code) if code in ("ABS", "NEG", "EXP", "HARD_SWISH") else None


MORE: dict[type, Callable[[Any], Written]] = {
    Binary: _binary,
    Cast: lambda op: ("CAST", ("CastOptions", {"inDataType": 2, "outDataType": 0})),
    Comparison: lambda op: (op.kind.name, _table(op.kind.name)),
    Concat: lambda op: ("CONCATENATION", ("ConcatenationOptions", {"axis": op.axis})),
    Dequantize: lambda op: ("DEQUANTIZE", _table("DEQUANTIZE")),
    Gather: lambda op: ("GATHER", ("GatherOptions", {"axis": op.axis})),
    LeakyRelu: lambda op: ("LEAKY_RELU", ("LeakyReluOptions", {"alpha": op.alpha})),
    Pad: lambda op: ("PAD", _table("PAD")),
    Quantize: lambda op: ("QUANTIZE", _table("QUANTIZE")),
    Reshape: lambda op: ("RESHAPE", _table("RESHAPE")),
    Select: lambda op: ("SELECT", _table("SELECT")),
    Split: lambda op: ("SPLIT", ("SplitOptions", {"numSplits": op.count})),
    StridedSlice: lambda op: ("STRIDED_SLICE", _table("STRIDED_SLICE")),
    Transpose: lambda op: ("TRANSPOSE", _table("TRANSPOSE")),
    Unary: _unary,
}


def _written(trial: Trial) -> Written:
    if type(trial.op) in MORE:
        return MORE[type(trial.op)](trial.op)
    case = type("Case", (), {"op": trial.op, "inputs": [_array(given) for given in trial.operands]})
    return WRITERS[trial.op.name()](case)  # type: ignore[arg-type]


def _array(given: Any) -> Any:
    return np.zeros(given.shape, given.dtype.numpy) if isinstance(given, TensorType) else given


@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_the_expected_results_of_a_trial_equal_those_of_litert(trial: Trial) -> None:
    graph = trial.subgraph
    (operation,) = graph.operations
    types = graph.types(operation)
    constants = {at: given for at, given in enumerate(trial.operands) if isinstance(given, np.ndarray)}
    if types.inputs[-1] is None:  # LiteRT's convolutions have no optional bias
        bias = np.zeros(types.output.shape[-1] or 0, np.float32)
        types = evolve(types, inputs=(*types.inputs[:-1], TensorType(DType.FLOAT32, bias.shape)))
        constants[len(types.inputs) - 1] = bias
    code, options = _written(trial)
    inputs = trial.inputs()

    theirs = litert.run(litert.one_operator(code, options, types, constants), inputs)
    for wanted, found in zip(trial.wanted(inputs), theirs, strict=True):
        assert (wanted.dtype, wanted.shape) == (found.dtype, found.shape)
        if DType.from_numpy(wanted.dtype).is_float:
            largest = float(np.abs(found).max(initial=0, where=np.isfinite(found)))
            np.testing.assert_allclose(wanted, found, rtol=0, atol=3e-6 * largest)
        else:
            np.testing.assert_array_equal(wanted, found)
