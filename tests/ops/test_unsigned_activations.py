"""uint8 activations with int8 filters behave like int8 activations shifted by 128."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import compute_trials as trials
import litert_peer as litert
import numpy as np
import pytest
from attrs import evolve
from cases.case import Case

import onert
from onert.ir import Array, CallTypes, DType, ModelError, Quantization, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding


def _cases() -> Iterator[Case]:
    """Half of the int8 convolutions, with per-tensor or per-channel filters."""
    for case in (*list(trials.convolutions())[::2], *trials.transposed_convolutions()):
        image = next(a for a in case.inputs if a is not None and a.dtype != np.int32)
        if case.name.startswith("i8") and image.dtype == np.int8:
            yield case


_CODES = {
    "Conv2D": ("CONV_2D", "Conv2DOptions"),
    "DepthwiseConv2D": ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions"),
    "TransposeConv2D": ("TRANSPOSE_CONV", "TransposeConvOptions"),
}


def _written(case: Case) -> tuple[str, litert.Options]:
    op: Any = case.op
    code, table = _CODES[type(op).__name__]
    fields = {"padding": 0 if op.padding is Padding.SAME else 1}
    fields |= {"strideH": op.stride_height, "strideW": op.stride_width}
    fields |= {"fusedActivationFunction": list(Activation).index(op.activation)}
    if code != "TRANSPOSE_CONV":
        fields |= {"dilationHFactor": op.dilation_height, "dilationWFactor": op.dilation_width}
    if code == "DEPTHWISE_CONV_2D":
        image, weight = case.inputs[:2]
        assert image is not None
        assert weight is not None
        fields["depthMultiplier"] = weight.shape[3] // image.shape[3]
    return code, (table, fields)


def _moved(quantization: Quantization) -> Quantization:
    return evolve(quantization, zero_points=tuple(z + 128 for z in quantization.zero_points))


def _unsigned(types: CallTypes, at: int) -> CallTypes:
    def moved(type_: TensorType | None) -> TensorType:
        assert type_ is not None
        assert type_.quantization is not None
        return evolve(type_, dtype=DType.UINT8, quantization=_moved(type_.quantization))

    inputs = tuple(moved(t) if i == at else t for i, t in enumerate(types.inputs))
    return CallTypes(inputs, (moved(types.output),))


def _plus_128(array: Array) -> Array:
    return (array.astype(np.int16) + 128).astype(np.uint8)


@pytest.mark.parametrize("backends", [("reference",), ()], ids=["reference", "native"])
@pytest.mark.parametrize("case", [pytest.param(c, id=f"{c.op.label} {c.name}") for c in _cases()])
def test_uint8_convolutions_equal_int8_ones_shifted_by_128(case: Case, backends: tuple[str, ...]) -> None:
    (at,) = (i for i, a in enumerate(case.inputs) if a is not None and i not in case.constant)
    constants = {i: a for i, a in enumerate(case.inputs) if a is not None and i in case.constant}
    image = case.inputs[at]
    assert image is not None
    code, options = _written(case)
    signed = litert.one_operator(code, options, case.types(), constants)
    unsigned = litert.one_operator(code, options, _unsigned(case.types(), at), constants)
    execution = onert.Execution(onert.compile(onert.load(unsigned), backends=backends))
    (found,) = execution.run([_plus_128(image)]).values()
    np.testing.assert_array_equal(found, _plus_128(litert.run(signed, [image])[0]))


def _fully_connected() -> tuple[str, litert.Options, CallTypes, dict[int, Any]]:
    types = CallTypes(
        (
            TensorType(DType.UINT8, (1, 4), Quantization((0.5,), (128,))),
            TensorType(DType.INT8, (3, 4), Quantization((0.5,), (0,))),
        ),
        (TensorType(DType.UINT8, (1, 3), Quantization((0.5,), (128,))),),
    )
    return "FULLY_CONNECTED", ("FullyConnectedOptions", {}), types, {1: np.ones((3, 4), np.int8)}


def test_a_uint8_fully_connected_layer_with_int8_weights_is_rejected() -> None:
    """LiteRT reads its int8 filter as unsigned bytes."""
    model = litert.one_operator(*_fully_connected())
    with pytest.raises(ModelError, match=r"filter is i8 with an input of u8, expected u8"):
        onert.load(model)
