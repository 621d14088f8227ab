"""The valid combinations of element types and quantisations of inputs, filters and biases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import shape as shapes
from onert.ir.dtype import DType
from onert.ir.op import require
from onert.ir.types import TensorType

from .activation import Activation
from .dynamic_range import FILTERS

_FILTERS_OF = {
    DType.INT8: (DType.INT8, DType.INT4, DType.INT2),
    DType.UINT8: (DType.UINT8, DType.INT8),
    DType.INT16: (DType.INT8, DType.INT4, DType.INT2),
}
_BIASES_OF = {
    DType.INT8: (DType.INT32,),
    DType.UINT8: (DType.INT32,),
    DType.INT16: (DType.INT64, DType.INT32),
}


def require_filter_types(x: TensorType, weight: TensorType, bias: TensorType | None, axis: int) -> None:
    """Raises RuleError unless the operands can be multiplied; `axis` is the output axis of the filter.

    Float with float; float with quantised integers (dynamic range); int8 with int8, int4 or int2; uint8 with uint8, or
    with int8 as in Android's NNAPI; int16 with int8, int4 or int2. Signed filters and int16 inputs must be symmetric.
    """
    require_bias(x, weight, bias, axis)
    if x.dtype.is_float:
        if weight.dtype in FILTERS:
            require_hybrid(x)
            require_filter_scales(weight, axis)
        else:
            require_floats(x, weight)
        return
    require(x.dtype in _FILTERS_OF, f"input is {x.dtype.text}, expected a float, int8, uint8 or int16")
    require(
        weight.dtype in _FILTERS_OF[x.dtype],
        f"filter is {weight.dtype.text} with an input of {x.dtype.text}, expected "
        + " or ".join(d.text for d in _FILTERS_OF[x.dtype]),
    )
    require_filter_scales(weight, axis)
    require_scale("input", x)
    if weight.dtype is DType.UINT8:
        require_scale("filter", weight)
    else:
        require_symmetric("filter", weight)
    if x.dtype is DType.INT16:
        require_symmetric("input", x)


def require_fully_connected_types(x: TensorType, weight: TensorType, bias: TensorType | None) -> None:
    """Raises RuleError unless the operands of a fully connected layer can be multiplied.

    In addition to `require_filter_types`: int16 inputs with int16 filters, int8 filters with a zero point other than 0
    (per tensor), and, for float inputs, filters quantised in blocks of features.
    """
    blocks = None if weight.quantization is None else weight.quantization.block_size
    if x.dtype.is_float and weight.dtype in FILTERS and blocks is not None:
        require_bias(x, weight, bias, 0)
        require_hybrid(x)
        _require_blocks(weight, blocks)
        return
    if x.dtype is DType.INT16 and weight.dtype is DType.INT16:
        require_bias(x, weight, bias, 0)
        require_filter_scales(weight, 0)
        require_scale("input", x)
        require_symmetric("input", x)
        return
    if x.dtype in (DType.INT8, DType.INT16) and weight.dtype is DType.INT8 and len(scales_of(weight)) == 1:
        require_bias(x, weight, bias, 0)
        require_filter_scales(weight, 0)
        require_scale("input", x)
        return
    require(
        x.dtype is not DType.UINT8 or weight.dtype is DType.UINT8,
        f"filter is {weight.dtype.text} with an input of {x.dtype.text}, expected {DType.UINT8.text}",
    )
    require_filter_types(x, weight, bias, axis=0)


def _require_blocks(weight: TensorType, size: int) -> None:
    outputs, features = weight.shape
    quantization = weight.quantization
    assert quantization is not None
    require(quantization.axis == 1, f"filter is quantised in blocks along axis {quantization.axis}, expected axis 1")
    require(size >= 1, f"filter's blocks have {size} features, expected at least 1")
    require_symmetric("filter", weight)
    if outputs is not None and features is not None:
        require(features % size == 0, f"filter has {features} features, expected a multiple of the block's {size}")
        expected = outputs * (features // size)
        require(
            len(quantization.scales) == expected, f"filter has {len(quantization.scales)} scales, expected {expected}"
        )


def has_float_result(x: TensorType, output: DType | None) -> bool:
    """Whether a product of quantised integers has real results: float32 is requested for stored integers."""
    return output is DType.FLOAT32 and x.dtype.is_integer


def require_output(
    output: DType | None, activation: Activation, x: TensorType, weight: TensorType, bias: TensorType | None, axis: int
) -> None:
    """Raises RuleError unless the operands can be multiplied with results of type `output`, by default that of `x`."""
    if has_float_result(x, output):
        require_bytes_for_floats(x, weight, bias, axis)
        require(activation is Activation.NONE, f"activation is {activation.name}, expected NONE")
    else:
        require(output in (None, x.dtype), f"result is {output}, expected {x.dtype.text}")
        require_filter_types(x, weight, bias, axis)


def require_bytes_for_floats(x: TensorType, weight: TensorType, bias: TensorType | None, axis: int) -> None:
    """Raises RuleError unless the operands may have a float32 result: 8-bit input, symmetric int8 filter, no bias.

    The input is quantised per tensor; the filter may have a scale per index along `axis`, its output axis.
    """
    require(x.dtype in (DType.INT8, DType.UINT8), f"input is {x.dtype.text} for a result of f32, expected i8 or u8")
    require(weight.dtype is DType.INT8, f"filter is {weight.dtype.text} for a result of f32, expected i8")
    require(bias is None, "there is a bias with a result of f32, expected none")
    require_scale("input", x)
    require_filter_scales(weight, axis)
    require_symmetric("filter", weight)


def require_hybrid(x: TensorType) -> None:
    """Raises RuleError unless the input can be quantised at run time."""
    require(x.dtype is DType.FLOAT32, f"input is {x.dtype.text} with a quantised filter, expected f32")


def require_floats(x: TensorType, y: TensorType) -> None:
    """Raises RuleError unless both are floats of at most 32 bits (computed in float32), or both are float64."""
    double = (x.dtype is DType.FLOAT64, y.dtype is DType.FLOAT64)
    fits = x.dtype.is_float and y.dtype.is_float and double[0] == double[1]
    require(
        fits, f"operands are {x.dtype.text} and {y.dtype.text}, expected floats of one width, or a quantised filter"
    )


def require_bias(x: TensorType, weight: TensorType, bias: TensorType | None, axis: int) -> None:
    """Raises RuleError unless the bias has one element per filter output, in the accumulator's element type."""
    if bias is None:
        return
    count, size = weight.shape[axis], shapes.num_elements(bias.shape)
    require(count is None or size is None or size == count, f"bias is {bias}, expected {count} elements")
    if x.dtype.is_float:
        require_floats(x, bias)
    else:
        allowed = _BIASES_OF.get(x.dtype, (DType.INT32,))
        require(
            bias.dtype in allowed,
            f"bias is {bias.dtype.text}, expected " + " or ".join(d.text for d in allowed),
        )


def require_filter_scales(weight: TensorType, axis: int) -> None:
    """Raises RuleError unless a quantised filter has one scale, or one per index along `axis`."""
    quantization = weight.quantization
    if quantization is None:
        require(False, f"filter of {weight} has no quantisation, expected a scale")
        return
    require(quantization.block_size is None, "filter is quantised in blocks, expected per tensor or per channel")
    count, scales = weight.shape[axis], len(quantization.scales)
    require(count is None or scales in (1, count), f"filter has {scales} scales, expected 1 or {count}")
    require(
        scales == 1 or quantization.axis == axis % weight.rank,
        f"filter is quantised along axis {quantization.axis}, expected axis {axis % weight.rank}",
    )


def require_scale(what: str, type_: TensorType) -> None:
    """Raises RuleError unless a tensor has one scale and one zero point."""
    require(
        type_.quantization is not None, f"{what} is {type_} without quantisation, expected a scale and a zero point"
    )
    require(len(scales_of(type_)) == 1, f"{what} has {len(scales_of(type_))} scales, expected one")


def require_symmetric(what: str, type_: TensorType) -> None:
    """Raises RuleError if there is a zero point other than 0."""
    stored = np.zeros(1) if type_.quantization is None else type_.quantization.zero_points.stored
    wrong = stored[np.argmax(stored != 0)]
    require(wrong == 0, f"{what} of {type_.dtype.text} has zero point {wrong}, expected 0")


def scales_of(type_: TensorType) -> Sequence[float]:
    """All scales; empty if there is no quantisation."""
    return () if type_.quantization is None else type_.quantization.scales
