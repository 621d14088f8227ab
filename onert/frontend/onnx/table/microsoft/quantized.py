"""ONNX Runtime's operators on quantised integers with scales as operands."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import NEWEST, Importer, Node
from onert.frontend.onnx.table.elements.activations import TABLE as ACTIVATIONS
from onert.frontend.onnx.table.elements.quantization import TABLE as QUANTIZATION
from onert.frontend.onnx.table.elements.quantization import saturate
from onert.frontend.onnx.table.layers.pooling import TABLE as POOLS
from onert.frontend.onnx.table.layers.products import TABLE as PRODUCTS
from onert.frontend.onnx.table.layers.quantized import TABLE as LAYERS
from onert.frontend.onnx.table.recurrent.layer import Layer, Product
from onert.frontend.onnx.table.recurrent.steps import as_loop
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction

from .fused import embedded
from .standard import channels_first


def _operand(node: Node, index: int) -> Expression:
    found = operand(node, index)
    return found.reshape() if found.rank == 1 and found.shape[0] == 1 else found


def _dequantize(node: Node, at: int) -> Expression:
    """The real numbers of an input; its scale and zero point are the next two inputs."""
    return _real(node, operand(node, at), at + 1, at + 2)


def _real(node: Node, x: Expression, scale: int, zero: int) -> Expression:
    """The real numbers of integers whose scale and zero point are two inputs."""
    return (x.cast(DType.FLOAT32) - _zero(node, zero)) * _operand(node, scale)


def _zero(node: Node, at: int) -> Expression | float:
    return _operand(node, at).cast(DType.FLOAT32) if node.has(at) else 0.0


def _quantize(node: Node, x: Expression, at: int, dtype: DType) -> int:
    """Quantise real numbers by the scale and zero point in the inputs `at` and `at + 1`."""
    return _counted(node, x / _operand(node, at), at + 1, dtype)


def _counted(node: Node, x: Expression, at: int, dtype: DType) -> int:
    """Round multiples of the result's scale, then add its zero point, the input `at`."""
    whole = _moved(x.unary(UnaryKind.ROUND), _zero(node, at))
    return saturate(node.draft, whole.operand, node.type(at).dtype if node.has(at) else dtype)


def _rounded(x: Expression, zero: Expression | float, dtype: DType) -> int:
    """Round after the zero point is added, where ONNX Runtime does so: this decides ties."""
    return saturate(x.draft, _moved(x, zero).unary(UnaryKind.ROUND).operand, dtype)


def _moved(x: Expression, zero: Expression | float) -> Expression:
    """`x` plus a zero point that may be absent."""
    return x + zero if isinstance(zero, Expression) else x


def _one(function: Callable[[Node, Expression], Expression]) -> Importer:
    """A function of one tensor. Inputs: x, its scale and zero point, the result's scale and zero point."""
    return lambda node: _quantize(node, function(node, _dequantize(node, 0)), 3, node.type(0).dtype)


def _plus(node: Node) -> int:
    """Add two tensors: a factor for each, and one number for all zero points, as in ONNX Runtime.

    Inputs: each tensor with its scale and zero point, then the result's.
    """
    scale = _operand(node, 6)
    one, other = (_operand(node, at) / scale for at in (1, 4))
    x, y = (operand(node, at).cast(DType.FLOAT32) for at in (0, 3))
    zero = -(one * _zero(node, 2) + other * _zero(node, 5)) + _zero(node, 7)
    return _rounded(x * one + zero + y * other, 0.0, node.type(0).dtype)


def _times(node: Node) -> int:
    """Multiply two tensors: the product of the integers is exact, and all scales are one factor, as in ONNX Runtime.

    Inputs: as of a sum.
    """
    x, y = (operand(node, at).cast(DType.FLOAT32) - _zero(node, at + 2) for at in (0, 3))
    factor = _operand(node, 1) * _operand(node, 4) / _operand(node, 6)
    return _rounded(x * y * factor, _zero(node, 7), node.type(0).dtype)


def _plane_mean(node: Node) -> int:
    """The mean of each channel: the sum of the integers is exact, and its divisor is part of the scale."""
    x = operand(node, 0)
    axes = range(1, x.rank - 1) if node.flag("channels_last") else range(2, x.rank)
    count = x.size(axes[0])
    for axis in axes[1:]:
        count = count * x.size(axis)
    total = x.cast(DType.INT32).sum(*axes)
    if node.has(2):
        total = total - _operand(node, 2).cast(DType.INT32) * count.cast(DType.INT32)
    factor = _operand(node, 1) / (_operand(node, 3) * count.cast(DType.FLOAT32))
    return _counted(node, total.cast(DType.FLOAT32) * factor, 4, x.dtype)


def _concat(node: Node) -> int:
    """Concatenate tensors that have their own scales; the result's scale and zero point are the first inputs."""
    parts = [_dequantize(node, at) for at in range(2, len(node.inputs), 3)]
    if not parts:
        raise ModelError("has no tensors to concatenate")
    return _quantize(node, parts[0].concat(parts[1:], node.integer("axis")), 0, node.type(2).dtype)


def _integers_to_float(node: Node) -> int:
    """MatMulInteger times both scales plus a bias. Inputs: a, b, their scales, their zero points, the bias."""
    given = (node.input(0), node.input(1), node.optional(4), node.optional(5))
    sums = PRODUCTS["MatMulInteger"](evolve(node, inputs=given, outputs=("sums",)))
    assert isinstance(sums, int)
    y = Expression(node.draft, sums).cast(DType.FLOAT32) * (_operand(node, 2) * _operand(node, 3))
    return (y + operand(node, 6) if node.has(6) else y).operand


def _dynamic(node: Node) -> int:
    """Quantise a by its own range. Inputs: a, b, b's scale and zero point, the bias."""
    quantized = QUANTIZATION["DynamicQuantizeLinear"](evolve(node, inputs=(node.input(0),)))
    assert isinstance(quantized, tuple)
    x, scale, zero = quantized
    given = (x, node.input(1), scale, node.input(2), zero, node.optional(3), node.optional(4))
    return _integers_to_float(evolve(node, inputs=given))


class _IntegerLayer(Layer):
    """A layer with integer weights [directions, inputs, gates * units] and their scales and zero points, per direction
    or per column, after the inputs of the float layer.

    As in ONNX Runtime, the inputs of all steps are quantised together, and at each step the states of the whole batch.
    """

    units_axis = 1

    def products(self, index: int, direction: int, *gates: int) -> list[Product]:
        assert not gates
        found = [self._of(at, direction) for at in (index, 6 + 2 * index, 7 + 2 * index)]

        def times(x: Expression) -> Expression:
            inside = [None if each is None else self.inside(x.draft, each) for each in found]
            return x.of(_dynamic(evolve(self.node, draft=x.draft, inputs=(x.operand, *inside))))

        return [times]

    def _of(self, index: int, direction: int) -> int | None:
        """The part of an optional input that belongs to a direction; of a constant a constant."""
        if not self.node.has(index):
            return None
        value = self.node.value(index)
        operand = self.node.input(index)
        return (
            self.of(operand, direction)
            if value is None
            else self.d.constant(value[direction], self.d.type(operand).dtype)
        )


def _lstm(node: Node) -> tuple[int, ...]:
    """LSTM with integer weights; its version has no layout attribute."""
    return as_loop(_IntegerLayer(node, 4), "LSTM")


def _product(node: Node) -> int:
    """`alpha * A · B`, with a 32-bit sum and bias, as real numbers or quantised to the result's scale.

    Inputs: a, its scale and zero point, the same for b, the bias, the result's scale and zero point.
    """
    d = node.draft
    sides = []
    for at, turned in ((0, "transA"), (3, "transB")):
        x = operand(node, at)
        sides.append(x.transpose(1, 0).operand if node.flag(turned) else x.operand)
    given = (*sides, node.optional(2), node.optional(5))
    found = PRODUCTS["MatMulInteger"](evolve(node, inputs=given, outputs=("sums",)))
    assert isinstance(found, int)
    sums = Expression(d, found)
    sums = sums + operand(node, 6) if node.has(6) else sums
    factor = _operand(node, 1) * _operand(node, 4)
    alpha = node.number("alpha", 1.0)
    factor = factor if alpha == 1 else factor * alpha
    real = sums.cast(DType.FLOAT32)
    if not node.has(7):
        return (real * factor).operand
    return _counted(node, real * (factor / _operand(node, 7)), 8, node.type(0).dtype)


def _softmax(node: Node, x: Expression) -> Expression:
    """Softmax along an axis; before opset 13, over all axes from it on."""
    version = node.integer("opset", 13)
    found = ACTIVATIONS["Softmax"](evolve(node, inputs=(x.operand,), version=version))
    assert isinstance(found, int)
    return x.of(found)


def _mean(node: Node, x: Expression) -> Expression:
    axes = node.integers("axes") or tuple(range(x.rank))
    return x.reduce(Reduction.MEAN, axes, keep=node.flag("keepdims", default=True))


def _pool(node: Node) -> int:
    """The average of each window. Inputs: x, its scale and zero point, the result's scale and zero point."""
    x = _dequantize(node, 0)
    found = channels_first(POOLS["AveragePool"])(evolve(node, inputs=(x.operand,), version=NEWEST))
    assert isinstance(found, int)
    return _rounded(x.of(found) / _operand(node, 3), _zero(node, 4), node.type(0).dtype)


def _where(node: Node) -> int:
    """Select from two tensors. Inputs: the condition, each tensor with its scale and zero point, then the result's."""
    condition = operand(node, 0)
    return _quantize(node, condition.select(_dequantize(node, 1), _dequantize(node, 4)), 7, node.type(1).dtype)


def _embedded(node: Node) -> tuple[int | None, ...]:
    """Embeddings from tables of integers: only the rows that are looked up become real numbers.

    Inputs: as of EmbedLayerNormalization, without positions; then the five scales and zero points of inputs 2 to 6.
    """
    return embedded(node, lambda at, x: _real(node, x, at + 6, at + 11), None)[:2]


MICROSOFT: dict[str, Importer] = {
    "DynamicQuantizeLSTM": _lstm,
    "DynamicQuantizeMatMul": _dynamic,
    "MatMulIntegerToFloat": _integers_to_float,
    "QEmbedLayerNormalization": _embedded,
    "QGemm": _product,
    "QLinearAdd": _plus,
    "QLinearAveragePool": _pool,
    "QLinearConcat": _concat,
    "QLinearConv": channels_first(LAYERS["QLinearConv"]),
    "QLinearGlobalAveragePool": _plane_mean,
    "QLinearLeakyRelu": _one(lambda node, x: (x < 0).select(x * node.number("alpha", 0.01), x)),
    "QLinearMul": _times,
    "QLinearReduceMean": _one(_mean),
    "QLinearSigmoid": _one(lambda node, x: x.unary(UnaryKind.LOGISTIC)),
    "QLinearSoftmax": _one(_softmax),
    "QLinearWhere": _where,
}
