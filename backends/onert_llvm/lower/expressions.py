"""Element-wise operations as expression trees of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onert.ir import CallTypes, DType, Op, Shape
from onert.ir.ops.activation import Activation
from onert.ir.ops.binary import Binary, BinaryKind, PRelu
from onert.ir.ops.unary import LeakyRelu, Unary, UnaryKind
from onert_llvm.kernels.elementwise import Reach
from onert_llvm.kernels.expression import Apply, Const, Expr, Fn, clamp, hard_swish


def _gelu(x: Expr) -> Expr:
    """x / 2 · (1 + erf(x / √2))."""
    inside = Apply(Fn.ADD, (Apply(Fn.ERF, (Apply(Fn.MUL, (x, Const(0.7071067811865476))),)), Const(1.0)))
    return Apply(Fn.MUL, (Apply(Fn.MUL, (x, Const(0.5))), inside))


_UNARY: Mapping[UnaryKind, Callable[[Expr], Expr]] = {
    UnaryKind.ABS: lambda x: Apply(Fn.ABS, (x,)),
    UnaryKind.NEG: lambda x: Apply(Fn.NEG, (x,)),
    UnaryKind.SQUARE: lambda x: Apply(Fn.MUL, (x, x)),
    UnaryKind.EXP: lambda x: Apply(Fn.EXP, (x,)),
    UnaryKind.LOG: lambda x: Apply(Fn.LOG, (x,)),
    UnaryKind.SQRT: lambda x: Apply(Fn.SQRT, (x,)),
    UnaryKind.RSQRT: lambda x: Apply(Fn.RSQRT, (x,)),
    UnaryKind.TANH: lambda x: Apply(Fn.TANH, (x,)),
    UnaryKind.LOGISTIC: lambda x: Apply(Fn.LOGISTIC, (x,)),
    UnaryKind.HARD_SWISH: hard_swish,
    UnaryKind.RELU: lambda x: clamp(x, 0.0, None),
    UnaryKind.RELU6: lambda x: clamp(x, 0.0, 6.0),
    UnaryKind.RELU_N1_TO_1: lambda x: clamp(x, -1.0, 1.0),
    UnaryKind.RELU_0_TO_1: lambda x: clamp(x, 0.0, 1.0),
    UnaryKind.FLOOR: lambda x: Apply(Fn.FLOOR, (x,)),
    UnaryKind.CEIL: lambda x: Apply(Fn.CEIL, (x,)),
    UnaryKind.ROUND: lambda x: Apply(Fn.ROUND, (x,)),
    UnaryKind.GELU: _gelu,
}
_BINARY: Mapping[BinaryKind, Callable[[Expr, Expr], Expr]] = {
    BinaryKind.ADD: lambda x, y: Apply(Fn.ADD, (x, y)),
    BinaryKind.SUB: lambda x, y: Apply(Fn.SUB, (x, y)),
    BinaryKind.MUL: lambda x, y: Apply(Fn.MUL, (x, y)),
    BinaryKind.DIV: lambda x, y: Apply(Fn.DIV, (x, y)),
    BinaryKind.SQUARED_DIFFERENCE: lambda x, y: Apply(Fn.MUL, (Apply(Fn.SUB, (x, y)),) * 2),
}


def activated(x: Expr, activation: Activation) -> Expr | None:
    """`x` with a fused activation; None for one that no expression says."""
    value = activation.value
    if activation is Activation.TANH:
        return Apply(Fn.TANH, (x,))
    return None if value.function is not None else clamp(x, value.low, value.high)


def supported(op: Op, types: CallTypes) -> bool:
    """Whether an operation is element-wise in float32 and has an expression."""
    if any(t is not None and t.dtype is not DType.FLOAT32 for t in (*types.inputs, *types.outputs)):
        return False
    if isinstance(op, Unary):
        return op.kind in _UNARY
    if isinstance(op, Binary):
        return op.kind in _BINARY and (op.activation is Activation.TANH or op.activation.value.function is None)
    return isinstance(op, LeakyRelu | PRelu)


def expression(op: Op, args: list[Expr]) -> Expr:
    """The tree of a supported operation on trees."""
    if isinstance(op, Unary):
        return _UNARY[op.kind](args[0])
    if isinstance(op, Binary):
        found = activated(_BINARY[op.kind](args[0], args[1]), op.activation)
        assert found is not None
        return found
    alpha: Expr = Const(op.alpha) if isinstance(op, LeakyRelu) else args[1]
    # max(x, 0) + alpha * min(x, 0): exact on either side, for any alpha
    return Apply(
        Fn.ADD,
        (clamp(args[0], 0.0, None), Apply(Fn.MUL, (alpha, clamp(args[0], None, 0.0)))),
    )


def spread(own: Shape, whole: Shape) -> Reach | None:
    """How a tensor lies under results that it broadcasts to; None for a way that no kernel has."""
    if own == whole:
        return Reach.FULL
    padded = (1,) * (len(whole) - len(own)) + own
    if all(d == 1 for d in padded):
        return Reach.SCALAR
    if padded[-1] == whole[-1] and all(d == 1 for d in padded[:-1]):
        return Reach.ROW
    if padded[-1] == 1 and padded[:-1] == whole[:-1]:
        return Reach.COLUMN
    return None
