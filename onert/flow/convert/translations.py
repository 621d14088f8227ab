"""Conversions of IR operations to operations of flows: a table by class."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from onert.flow.builder import Builder
from onert.flow.builder.parts import strided_slice
from onert.flow.graph import Variable
from onert.frontend.flow.elements import DTYPES
from onert.ir import Array, CallTypes, DType, Op, RuleError, Shape
from onert.ir import shape as shapes
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.gather import Gather, GatherNd
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, Slice, StridedSlice
from onert.ir.ops.elementwise.binary import AddN, Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind, unary_kinds
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax


@frozen(eq=False)
class Given:
    """The operands of an operation as variables, and the types of operands and results."""

    f: Builder
    inputs: tuple[Variable | None, ...]
    types: CallTypes

    def __getitem__(self, position: int) -> Variable:
        found = self.inputs[position]
        if found is None:
            raise RuleError(f"input {position} is absent")
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result. Raises RuleError if a size is open."""
        return shapes.static(self.types.output.shape)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the first result, with -1 for open sizes."""
        return sizes_of(self.types.output.shape)

    @property
    def dtype(self) -> str:
        """The element type of the first result."""
        return name_of(self.types.output.dtype)

    def has(self, position: int) -> bool:
        return position < len(self.inputs) and self.inputs[position] is not None

    def elements(self, position: int) -> Array:
        """The elements of a constant operand. Raises RuleError if the operand is not constant."""
        value = self.types.input(position).value
        if value is None:
            raise RuleError(f"input {position} is known only at run time")
        return value

    def add(self, optype: str, *operands: Variable, **attributes: Any) -> Variable:
        """Add an operation with the type and shape of the first result, and return its result."""
        result = self.f.made(optype, operands, None, self.sizes, self.dtype)
        assert result.producer is not None
        for name, value in attributes.items():
            result.producer.add_attr(name, value)
        return result

    def activated(self, x: Variable, activation: Activation) -> Variable:
        """Apply the activation with which an operation ends."""
        clamp = activation.value
        if activation is Activation.NONE:
            return x
        if activation is Activation.RELU:
            return self.f.relu(x)
        if activation is Activation.TANH:
            return self.f.tanh(x)
        if clamp.function is not None or clamp.low is None or clamp.high is None:
            raise RuleError(f"the activation {activation.name}")
        return self.f.clip(x, clamp.low, clamp.high)


Rule = Callable[[Given, Any], Sequence[Variable]]


def sizes_of(shape: Shape) -> tuple[int, ...]:
    """A shape in flows, with -1 for an open size. Raises RuleError if several sizes are open."""
    if shape.count(None) > 1:
        raise RuleError(f"the shape {shapes.text(shape)} with more than one open size")
    return tuple(-1 if size is None else size for size in shape)


def name_of(dtype: DType) -> str:
    """The name of an element type in flows. Raises RuleError if they have none."""
    name = dtype.name.lower()
    if DTYPES.get(name) is not dtype or dtype.is_handle:
        raise RuleError(f"elements of type {dtype.text}")
    return name


_SAME = unary_kinds(
    "Abs Neg Square Sign Exp Log Sqrt Rsqrt Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh "
    "Erf Relu Floor Ceil Trunc Round"
)
_UNARY: Mapping[UnaryKind, str] = {
    **{kind: name for name, kind in _SAME.items()},
    UnaryKind.LOGISTIC: "Sigmoid",
    UnaryKind.GELU_TANH: "Gelu",
    UnaryKind.LOGICAL_NOT: "Not",
}
_BOUNDS = {
    UnaryKind.RELU6: (0.0, 6.0),
    UnaryKind.RELU_N1_TO_1: (-1.0, 1.0),
    UnaryKind.RELU_0_TO_1: (0.0, 1.0),
}


def _unary(g: Given, op: Unary) -> Sequence[Variable]:
    f, x = g.f, g[0]
    if op.kind in _UNARY:
        return (g.add(_UNARY[op.kind], x),)
    if op.kind in _BOUNDS:
        return (f.clip(x, *_BOUNDS[op.kind]),)
    if op.kind is UnaryKind.GELU:
        return (f.mul(f.mul(x, 0.5), f.add(f.erf(f.mul(x, math.sqrt(0.5))), 1.0)),)
    if op.kind is UnaryKind.HARD_SWISH:
        return (f.mul(x, f.mul(f.clip(f.add(x, 3.0), 0.0, 6.0), 1 / 6)),)
    if op.kind is UnaryKind.ELU:
        return (f.cond(f.less(x, 0.0), f.sub(f.exp(x), 1.0), x),)
    raise RuleError(op.label)


_BINARY: Mapping[BinaryKind, str] = {
    BinaryKind.ADD: "Add",
    BinaryKind.SUB: "Sub",
    BinaryKind.MUL: "Mul",
    BinaryKind.DIV: "Div",
    BinaryKind.REMAINDER: "Mod",
    BinaryKind.POW: "Pow",
    BinaryKind.MAXIMUM: "Maximum",
    BinaryKind.MINIMUM: "Minimum",
    BinaryKind.LOGICAL_AND: "And",
    BinaryKind.LOGICAL_OR: "Or",
}


def _binary(g: Given, op: Binary) -> Sequence[Variable]:
    if op.kind is BinaryKind.SQUARED_DIFFERENCE:
        return (g.activated(g.f.square(g.f.sub(g[0], g[1])), op.activation),)
    if op.kind is BinaryKind.FLOOR_DIV and g.types.output.dtype.is_float:
        return (g.f.floor(g.f.div(g[0], g[1])),)
    if op.kind not in _BINARY:
        raise RuleError(op.label)
    return (g.activated(g.add(_BINARY[op.kind], g[0], g[1]), op.activation),)


def _add_n(g: Given, op: AddN) -> Sequence[Variable]:
    total = g[0]
    for position in range(1, len(g.inputs)):
        total = g.f.add(total, g[position])
    return (total if len(g.inputs) > 1 else g.f.identity(total),)


def _select(g: Given, op: Select) -> Sequence[Variable]:
    condition = g[0]
    if op.rows and condition.rank() == 1 and g[1].rank() > 1:
        condition = g.f.reshape(condition, [*condition.shape, *(1,) * (g[1].rank() - 1)])
    return (g.add("Cond", condition, g[1], g[2]),)


def _reshaped(g: Given, op: Op) -> Sequence[Variable]:
    return (g.f.reshape(g[0], g.sizes),)


def _fully_connected(g: Given, op: FullyConnected) -> Sequence[Variable]:
    f, weight = g.f, g[1]
    depth = weight.shape[1]
    rows = f.reshape(g[0], [-1, depth]) if g[0].rank() != 2 or g[0].shape[-1] != depth else g[0]
    found = f.made("MatMul", [rows, weight], None, [rows.shape[0], weight.shape[0]])
    assert found.producer is not None
    found.producer.add_attr("transpose_b", True)
    if g.has(2):
        found = f.add(found, g[2])
    found = g.activated(found, op.activation)
    return (found if tuple(found.shape) == g.sizes else f.reshape(found, g.sizes),)


def _matmul(g: Given, op: BatchMatMul) -> Sequence[Variable]:
    """Flows multiply batches of equal shape, so missing and broadcast batch dimensions are expanded."""
    if op.output is not None or g[0].type != g[1].type:
        raise RuleError("operands or results of several element types")
    batch = g.sizes[:-2]
    if -1 in batch and any(tuple(v.shape[:-2]) != batch for v in (g[0], g[1])):
        raise RuleError("batches of open and of known size together")
    x, y = (v if tuple(v.shape[:-2]) == batch else g.f.broadcast(v, [*batch, *v.shape[-2:]]) for v in (g[0], g[1]))
    adjoint = {"transpose_a": op.adjoint_x, "transpose_b": op.adjoint_y}
    return (g.add("MatMul", x, y, **{name: True for name, given in adjoint.items() if given}),)


_REDUCTIONS: Mapping[Reduction, str] = {
    Reduction.SUM: "sum",
    Reduction.PROD: "product",
    Reduction.MAX: "max",
    Reduction.MIN: "min",
    Reduction.ANY: "any",
    Reduction.ALL: "all",
    Reduction.MEAN: "mean",
}


def _reduce(g: Given, op: Reduce) -> Sequence[Variable]:
    """Reduce along one axis after the other, last axis first."""
    x = g[0]
    axes = shapes.normalize_axes([int(a) for a in g.elements(1).reshape(-1)], x.rank())
    if op.kind is Reduction.MEAN and not g.types.output.dtype.is_float:
        raise RuleError(f"the mean of {g.dtype}")
    for axis in sorted(axes, reverse=True):
        x = getattr(g.f, _REDUCTIONS[op.kind])(x, axis, op.keep_dims)
    return (x if axes else g.f.identity(x),)


def _arg_reduce(g: Given, op: ArgReduce) -> Sequence[Variable]:
    axis = shapes.normalize_axis(int(g.elements(1).reshape(-1)[0]), g[0].rank())
    return (g.add("ArgMax" if op.kind is Extreme.MAX else "ArgMin", g[0], axis=axis),)


def _softmax(g: Given, op: Softmax) -> Sequence[Variable]:
    x = g[0] if op.beta == 1 else g.f.mul(g[0], op.beta)
    return (g.f.softmax(x, x.rank() - 1),)


def _concat(g: Given, op: Concat) -> Sequence[Variable]:
    parts = [g[i] for i in range(len(g.inputs))]
    return (g.activated(g.f.concat(parts, axis=shapes.normalize_axis(op.axis, parts[0].rank())), op.activation),)


def _pack(g: Given, op: Pack) -> Sequence[Variable]:
    axis = shapes.normalize_axis(op.axis, len(g.sizes))
    parts = [g.f.expand_dims(g[i], axis) for i in range(len(g.inputs))]
    return (g.f.concat(parts, axis=axis),)


def _split_v(g: Given, op: SplitV) -> Sequence[Variable]:
    x, axis = g[0], shapes.normalize_axis(int(g.elements(2).reshape(-1)[0]), g[0].rank())
    found, start = [], 0
    for type_ in g.types.outputs:
        sizes = list(sizes_of(type_.shape))
        begin = [0] * x.rank()
        begin[axis] = start
        if sizes[axis] < 0:
            raise RuleError("parts of an axis of open size")
        start += sizes[axis]
        found.append(g.f.slice(x, begin, sizes))
    return found


def _unpack(g: Given, op: Unpack) -> Sequence[Variable]:
    parts = g.f.split(g[0], op.count, shapes.normalize_axis(op.axis, g[0].rank()))
    return [g.f.reshape(part, g.sizes) for part in parts]


def _strided_slice(g: Given, op: StridedSlice) -> Sequence[Variable]:
    begin, end, steps = ([int(i) for i in g.elements(position)] for position in (1, 2, 3))
    part = strided_slice(g.f, op, g[0], begin, end, steps)
    if part is None:
        raise RuleError("a part of an axis whose size is open, or steps other than 1")
    found, _ = part
    return (found if tuple(found.shape) == g.sizes else g.f.reshape(found, g.sizes),)


def _gather(g: Given, op: Gather) -> Sequence[Variable]:
    """Rows along the first axis."""
    if shapes.normalize_axis(op.axis, g[0].rank()) or op.batch_dims:
        raise RuleError(op.label)
    indices = g[1]
    if indices.rank() == 0:
        return (g.f.gather(g[0], indices),)
    return (g.f.gather(g[0], g.f.reshape(indices, [*indices.shape, 1])),)


def _gather_nd(g: Given, op: GatherNd) -> Sequence[Variable]:
    if g[1].rank() < 2:
        found = g.f.gather(g[0], g.f.reshape(g[1], [1, *g[1].shape]))
        return (g.f.reshape(found, g.sizes),)
    return (g.f.gather(g[0], g[1]),)


RULES: Mapping[type[Op], Rule] = {
    AddN: _add_n,
    ArgReduce: _arg_reduce,
    BatchMatMul: _matmul,
    Binary: _binary,
    BroadcastTo: lambda g, op: (g.f.broadcast(g[0], g.shape),),
    Cast: lambda g, op: (g.add("Cast", g[0]),),
    Comparison: lambda g, op: (g.add("".join(part.capitalize() for part in op.kind.name.split("_")), g[0], g[1]),),
    Concat: _concat,
    Copy: lambda g, op: (g.f.identity(g[0]),),
    ExpandDims: _reshaped,
    FullyConnected: _fully_connected,
    Gather: _gather,
    GatherNd: _gather_nd,
    LogSoftmax: lambda g, op: (g.f.log_softmax(g[0], g[0].rank() - 1),),
    Pack: _pack,
    Reduce: _reduce,
    Reshape: _reshaped,
    Select: _select,
    Slice: lambda g, op: (g.f.slice(g[0], [int(b) for b in g.elements(1)], [int(s) for s in g.elements(2)]),),
    Softmax: _softmax,
    Split: lambda g, op: g.f.split(g[1], op.count, int(g.elements(0).reshape(-1)[0])),
    SplitV: _split_v,
    Squeeze: _reshaped,
    StridedSlice: _strided_slice,
    Transpose: lambda g, op: (g.f.transpose(g[0], [int(axis) for axis in g.elements(1)]),),
    Unary: _unary,
    Unpack: _unpack,
}
"""The conversions, by the class of the operation."""
