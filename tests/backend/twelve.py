"""A backend unlike ours: twelve operations on plain numbers, in a memory space of its own.

It computes float32 with separate activations, has no adjoint matrices, no slices and no means, and relies on the
compiler to decompose everything else into what it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import frozen

from onert.backend import Backend, Sequence, Settings, Tensors
from onert.ir import Array, CallTypes, Context, DType, Op, Operation, RuleError, Subgraph, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.control_flow.enclosed import Loop
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.shape import static


@frozen(eq=False)
class Place:
    """The address of a tensor, which NumPy cannot mistake for an array."""

    arena: bytearray
    offset: int


class TwelveMemory:
    """Arenas of bytes, accessed by address only."""

    name = "twelve"
    alignment = 16

    def allocate(self, nbytes: int) -> bytearray:
        return bytearray(nbytes)

    def free(self, arena: bytearray) -> None:
        """Freed by Python's reference counting."""

    def view(self, arena: bytearray, offset: int, type_: TensorType) -> Place:
        return Place(arena, offset)

    def copy_in(self, source: Array, target: Place, type_: TensorType) -> None:
        array(target, type_)[...] = source

    def copy_out(self, source: Place, type_: TensorType) -> Array:
        return array(source, type_).copy()

    def copy(self, source: Place, target: Place, type_: TensorType) -> None:
        array(target, type_)[...] = array(source, type_)


def array(place: Place, type_: TensorType) -> Array:
    """The elements stored at an address."""
    shape = static(type_.shape)
    flat = np.frombuffer(place.arena, type_.dtype.numpy, int(np.prod(shape)), place.offset)
    return flat.reshape(shape)


# ---- the operations


PAIRS = {
    BinaryKind.ADD: np.add,
    BinaryKind.SUB: np.subtract,
    BinaryKind.MUL: np.multiply,
    BinaryKind.DIV: np.divide,
    BinaryKind.MAXIMUM: np.maximum,
    BinaryKind.MINIMUM: np.minimum,
}
FUNCTIONS: dict[UnaryKind, Callable[[Array], Array]] = {
    UnaryKind.EXP: np.exp,
    UnaryKind.SQRT: np.sqrt,
    UnaryKind.TANH: np.tanh,
    UnaryKind.LOGISTIC: lambda x: 0.5 * np.tanh(0.5 * x) + 0.5,
}
RELATIONS = {
    ComparisonKind.LESS: np.less,
    ComparisonKind.EQUAL: np.equal,
    ComparisonKind.NOT_EQUAL: np.not_equal,
}
TOTALS = {Reduction.SUM: np.sum, Reduction.MAX: np.max}


def windows(op: Any, x: Array, high: int, wide: int) -> Array:
    """[batch, height, width, channels, window height, window width]"""
    sizes = [(high - 1) * op.dilation_height + 1, (wide - 1) * op.dilation_width + 1]
    strides = [op.stride_height, op.stride_width]
    if op.padding is Padding.SAME:
        each = zip(x.shape[1:3], sizes, strides, strict=True)
        missing = [max((-(-n // stride) - 1) * stride + size - n, 0) for n, size, stride in each]
        x = np.pad(x, ((0, 0), *((m // 2, m - m // 2) for m in missing), (0, 0)))
    found = np.lib.stride_tricks.sliding_window_view(x, sizes, (1, 2))
    return found[:, :: strides[0], :: strides[1], :, :: op.dilation_height, :: op.dilation_width]


def conv(op: Conv2D, types: CallTypes, x: Array, weight: Array, bias: Array | None = None) -> Array:
    out: Array = np.tensordot(windows(op, x, *weight.shape[1:3]), weight, ([3, 4, 5], [3, 1, 2]))
    return out if bias is None else out + bias


def depthwise(op: DepthwiseConv2D, types: CallTypes, x: Array, weight: Array, bias: Array | None = None) -> Array:
    filters = weight.reshape(*weight.shape[1:3], x.shape[3], -1)
    out: Array = np.einsum("nhwcij,ijcm->nhwcm", windows(op, x, *weight.shape[1:3]), filters)
    out = out.reshape(*out.shape[:3], -1)
    return out if bias is None else out + bias


def gather(op: Gather, types: CallTypes, x: Array, indices: Array) -> Array:
    if indices.min() < 0 or indices.max() >= x.shape[op.axis]:
        raise RuleError(f"an index is outside of dimension {op.axis} of {x.shape[op.axis]}")
    return np.take(x, indices, op.axis)


def reduce(op: Reduce, types: CallTypes, x: Array, axes: Array) -> Array:
    total: Array = TOTALS[op.kind](x, axis=tuple({int(a) for a in axes.reshape(-1)}), keepdims=op.keep_dims)
    return total


def loop(op: Loop, types: CallTypes, *xs: Array) -> list[Array]:
    state = list(xs)
    while whole(op.condition, state)[0]:
        state = whole(op.body, state)
    return state


def whole(graph: Subgraph, inputs: list[Array]) -> list[Array]:
    known = {i: operand.data.array for i, operand in enumerate(graph.operands) if operand.data is not None}
    known |= dict(zip(graph.inputs, inputs, strict=True))
    for operation in graph.operations:
        known |= zip(operation.outputs, run(operation, graph.types(operation), known.__getitem__), strict=True)
    return [known[o] for o in graph.outputs]


def run(operation: Operation, types: CallTypes, elements: Callable[[int], Array]) -> list[Array]:
    given = (None if i is None else elements(i) for i in operation.inputs)
    with np.errstate(all="ignore"):
        found = RUN[type(operation.op)](operation.op, types, *given)
    return found if isinstance(found, list) else [found]


RUN: dict[type[Op], Callable[..., Any]] = {
    Conv2D: conv,
    DepthwiseConv2D: depthwise,
    BatchMatMul: lambda op, types, x, y: x @ y,
    Binary: lambda op, types, x, y: PAIRS[op.kind](x, y),
    Unary: lambda op, types, x: FUNCTIONS[op.kind](x),
    Comparison: lambda op, types, x, y: RELATIONS[op.kind](x, y),
    Select: lambda op, types, condition, x, y: np.where(condition, x, y),
    Reduce: reduce,
    Reshape: lambda op, types, x, *shape: x.reshape(static(types.output.shape)),
    Transpose: lambda op, types, x, order: x.transpose([int(axis) for axis in order]),
    Gather: gather,
    Loop: loop,
}
"""The twelve operations."""
ELEMENTS = (DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL)


def reasons(op: Any, types: CallTypes) -> Iterator[str | bool]:
    """A sentence for each violated rule."""
    floats = types.output.dtype is DType.FLOAT32
    yield type(op) not in RUN and f"{op.label} is not one of the twelve"
    for t in (*types.inputs, *types.outputs):
        known = t is None or (t.is_static and t.quantization is None and 0 not in t.shape)
        yield not known and f"{t} is no plain tensor of a known shape"
        yield t is not None and t.dtype not in ELEMENTS and f"{t} is unknown"
    yield getattr(op, "activation", Activation.NONE) is not Activation.NONE and "activations are operations"
    yield getattr(op, "batch_dims", 0) != 0 and "batches are not gathered"
    yield (getattr(op, "adjoint_x", False) or getattr(op, "adjoint_y", False)) and "matrices are not turned round"
    yield bool(getattr(op, "rows", False)) and "conditions choose elements"
    kinds = {Binary: PAIRS, Unary: FUNCTIONS, Comparison: RELATIONS, Reduce: TOTALS}.get(type(op))
    yield kinds is not None and op.kind not in kinds and f"{op.kind.name} is not among the functions"
    integers = isinstance(op, Binary) and op.kind is not BinaryKind.DIV and types.output.dtype.is_integer
    computes = isinstance(op, Binary | Unary | Reduce | Conv2D | DepthwiseConv2D | BatchMatMul)
    yield computes and not floats and not integers and "only float32 is computed"
    yield isinstance(op, Conv2D) and types.input(0).shape[3] != types.input(1).shape[3] and "groups are not run"
    yield isinstance(op, Reduce) and types.input(1).value is None and "axes are constants"
    for graph in (op.condition, op.body) if isinstance(op, Loop) else ():
        yield from (each for o in graph.operations for each in reasons(o.op, graph.types(o)))


class Twelve(Backend):
    """Runs twelve operations."""

    name = "twelve"

    def __init__(self) -> None:
        self._memory = TwelveMemory()

    @property
    def memory(self) -> TwelveMemory:
        return self._memory

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        return next((str(reason) for reason in reasons(operation.op, types) if reason), None)

    def generate(self, sequence: Sequence, settings: Settings) -> TwelveKernel:
        return TwelveKernel(sequence)


@frozen(eq=False)
class TwelveKernel:
    """Runs a sequence operation by operation."""

    sequence: Sequence

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        graph = self.sequence.subgraph
        body = [(operation, graph.types(operation)) for operation in self.sequence.body]
        views = {i: array(tensors[i].buffer, tensors[i].type) for o, _ in body for i in (*o.used, *o.outputs)}

        def call() -> None:
            for operation, types in body:
                for out, result in zip(operation.outputs, run(operation, types, views.__getitem__), strict=True):
                    views[out][...] = result

        return call
