"""Element-wise operations as expression trees of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from onert.ir import CallTypes, DType, Op, Shape
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.binary import STORED, AddN, Binary, BinaryKind, PRelu
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind
from onert.ir.symbolic.sizes import are_broadcast, are_ones, is_broadcast
from onert_llvm.kernels.arithmetic.expression import Apply, Const, Expr, Fn, Kind, clamp, hard_swish
from onert_llvm.kernels.arithmetic.ranges import bounds
from onert_llvm.kernels.elementwise.elementwise import Reach
from onert_llvm.lower.dtype_sets import BYTES, KINDS
from onert_llvm.schedule.reciprocals import reciprocal

from . import comparable, transcendental

_REALS, _TRUTHS = (Kind.F32,), (Kind.BOOL,)
_WHOLES = (Kind.I8, Kind.I16, Kind.I32, Kind.I64, Kind.U8, Kind.U16, Kind.U32, Kind.U64)
_EXACT = (Kind.F32, Kind.F64)
"""Floats with native forms: functions of few instructions round once, the errors of others are bounded."""
_NUMBERS = (*_EXACT, *_WHOLES)


def _clamped(low: float, high: float | None) -> Callable[[Expr], Expr]:
    """A clamp; unsigned numbers need no lower bound."""
    return lambda x: clamp(x, None if x.kind.unsigned else low, high)


def _unary(fn: Fn) -> Callable[[Expr], Expr]:
    return lambda x: Apply(fn, (x,), x.kind)


def _binary(fn: Fn) -> Callable[[Expr, Expr], Expr]:
    return lambda x, y: Apply(fn, (x, y), x.kind)


def _square(x: Expr) -> Expr:
    return Apply(Fn.MUL, (x, x), x.kind)


UNARY: Mapping[UnaryKind, tuple[Callable[[Expr], Expr], tuple[Kind, ...]]] = {
    UnaryKind.ABS: (_unary(Fn.ABS), _NUMBERS),
    UnaryKind.NEG: (_unary(Fn.NEG), _NUMBERS),
    UnaryKind.SQUARE: (_square, _NUMBERS),
    UnaryKind.SIGN: (_unary(Fn.SIGN), _NUMBERS),
    UnaryKind.EXP: (_unary(Fn.EXP), _EXACT),
    UnaryKind.LOG: (_unary(Fn.LOG), _EXACT),
    UnaryKind.SQRT: (_unary(Fn.SQRT), _EXACT),
    UnaryKind.RSQRT: (_unary(Fn.RSQRT), _EXACT),
    UnaryKind.CBRT: (_unary(Fn.CBRT), _REALS),
    UnaryKind.SIN: (_unary(Fn.SIN), _EXACT),
    UnaryKind.COS: (_unary(Fn.COS), _EXACT),
    UnaryKind.TAN: (transcendental.tan, _EXACT),
    UnaryKind.ASIN: (transcendental.asin, _EXACT),
    UnaryKind.ACOS: (transcendental.acos, _EXACT),
    UnaryKind.ATAN: (transcendental.atan, _EXACT),
    UnaryKind.SINH: (transcendental.sinh, _EXACT),
    UnaryKind.COSH: (transcendental.cosh, _EXACT),
    UnaryKind.TANH: (transcendental.tanh, _EXACT),
    UnaryKind.ASINH: (transcendental.asinh, _EXACT),
    UnaryKind.ACOSH: (transcendental.acosh, _EXACT),
    UnaryKind.ATANH: (transcendental.atanh, _EXACT),
    UnaryKind.SOFTPLUS: (transcendental.softplus, _EXACT),
    UnaryKind.LOGISTIC: (_unary(Fn.LOGISTIC), _EXACT),
    UnaryKind.ERF: (transcendental.erf, _EXACT),
    UnaryKind.ELU: (_unary(Fn.ELU), _EXACT),
    UnaryKind.HARD_SWISH: (hard_swish, _REALS),
    UnaryKind.RELU: (_clamped(0, None), _NUMBERS),
    UnaryKind.RELU6: (_clamped(0, 6), _NUMBERS),
    UnaryKind.RELU_N1_TO_1: (_clamped(-1, 1), _NUMBERS),
    UnaryKind.RELU_0_TO_1: (_clamped(0, 1), _NUMBERS),
    UnaryKind.FLOOR: (_unary(Fn.FLOOR), _EXACT),
    UnaryKind.CEIL: (_unary(Fn.CEIL), _EXACT),
    UnaryKind.TRUNC: (transcendental.trunc, _EXACT),
    UnaryKind.ROUND: (_unary(Fn.ROUND), _EXACT),
    UnaryKind.GELU: (transcendental.gelu, _EXACT),
    UnaryKind.GELU_TANH: (transcendental.gelu_tanh, _EXACT),
    UnaryKind.LOGICAL_NOT: (_unary(Fn.NOT), _TRUTHS),
}


def _divisor(y: Expr) -> Expr:
    """An integer divisor; 0 is reported."""
    return y if isinstance(y, Const) and y.value else Apply(Fn.NONZERO, (y,), y.kind)


def _truncated(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """The truncated quotient of integers, and the remainder."""
    quotient = Apply(Fn.QUOTIENT, (x, _divisor(y)), x.kind)
    return quotient, Apply(Fn.SUB, (x, Apply(Fn.MUL, (quotient, y), x.kind)), x.kind)


def _beyond(rest: Expr, y: Expr) -> Expr:
    """Whether the remainder is not 0 and its sign differs from the divisor's."""
    nothing = Const(0, y.kind)
    signs = (Apply(Fn.LT, (e, nothing), Kind.BOOL) for e in (rest, y))
    some = Apply(Fn.NE, (rest, nothing), Kind.BOOL)
    return Apply(Fn.AND, (some, Apply(Fn.XOR, tuple(signs), Kind.BOOL)), Kind.BOOL)


def _floor_quotient(x: Expr, y: Expr) -> Expr:
    """The quotient rounded down; for integers the truncated one, less 1 if the remainder's sign differs."""
    if x.kind.is_float:
        return Apply(Fn.FLOOR, (Apply(Fn.DIV, (x, y), x.kind),), x.kind)
    quotient, rest = _truncated(x, y)
    if x.kind.unsigned:
        return quotient
    return Apply(Fn.SUB, (quotient, Apply(Fn.CAST, (_beyond(rest, y),), x.kind)), x.kind)


def _floor_rest(x: Expr, y: Expr) -> Expr:
    """The remainder, with the sign of the divisor."""
    rest = _rest(x, y)
    if x.kind.unsigned:
        return rest
    return Apply(Fn.SELECT, (_beyond(rest, y), Apply(Fn.ADD, (rest, y), x.kind), rest), x.kind)


def _rest(x: Expr, y: Expr) -> Expr:
    return Apply(Fn.FMOD, (x, y), x.kind) if x.kind.is_float else _truncated(x, y)[1]


def _divided(x: Expr, y: Expr) -> Expr:
    return Apply(Fn.DIV, (x, y), x.kind) if x.kind.is_float else _truncated(x, y)[0]


def _power(x: Expr, y: Expr) -> Expr:
    """A power; small constant integer exponents become products."""
    if isinstance(y, Const):
        if y.value in _POWERS:
            return _POWERS[y.value](x)
        if x.kind.is_float or y.value >= 0:
            return Apply(Fn.POW, (x, y), x.kind)
    return Apply(Fn.POW, (x, y if x.kind.is_float or x.kind.unsigned else Apply(Fn.NONNEGATIVE, (y,), y.kind)), x.kind)


_POWERS: Mapping[float, Callable[[Expr], Expr]] = {
    1.0: lambda x: x,
    2.0: _square,
    3.0: lambda x: Apply(Fn.MUL, (_square(x), x), x.kind),
}


BINARY: Mapping[BinaryKind, tuple[Callable[[Expr, Expr], Expr], tuple[Kind, ...]]] = {
    BinaryKind.ADD: (_binary(Fn.ADD), _NUMBERS),
    BinaryKind.SUB: (_binary(Fn.SUB), _NUMBERS),
    BinaryKind.MUL: (_binary(Fn.MUL), _NUMBERS),
    BinaryKind.DIV: (_divided, _NUMBERS),
    BinaryKind.FLOOR_DIV: (_floor_quotient, _NUMBERS),
    BinaryKind.FLOOR_MOD: (_floor_rest, _NUMBERS),
    BinaryKind.REMAINDER: (_rest, _NUMBERS),
    BinaryKind.POW: (_power, _NUMBERS),
    BinaryKind.ATAN2: (_binary(Fn.ATAN2), _EXACT),
    BinaryKind.MAXIMUM: (_binary(Fn.MAXIMUM), _NUMBERS),
    BinaryKind.MINIMUM: (_binary(Fn.MINIMUM), _NUMBERS),
    BinaryKind.SQUARED_DIFFERENCE: (lambda x, y: _square(Apply(Fn.SUB, (x, y), x.kind)), _NUMBERS),
    BinaryKind.LOGICAL_AND: (_binary(Fn.AND), _TRUTHS),
    BinaryKind.LOGICAL_OR: (_binary(Fn.OR), _TRUTHS),
    BinaryKind.BITWISE_AND: (_binary(Fn.AND), (*_WHOLES, *_TRUTHS)),
    BinaryKind.BITWISE_OR: (_binary(Fn.OR), (*_WHOLES, *_TRUTHS)),
    BinaryKind.BITWISE_XOR: (_binary(Fn.XOR), (*_WHOLES, *_TRUTHS)),
    BinaryKind.SHIFT_LEFT: (_binary(Fn.SHL), _WHOLES),
    BinaryKind.SHIFT_RIGHT: (_binary(Fn.SHR), _WHOLES),
}
_RULES: Mapping[BinaryKind, str] = {
    **dict.fromkeys(
        (BinaryKind.DIV, BinaryKind.FLOOR_DIV, BinaryKind.FLOOR_MOD, BinaryKind.REMAINDER),
        "an integer is divided by {}",
    ),
    BinaryKind.POW: "an integer is raised to the power {}, expected at least 0",
}
"""The error if a function is undefined for an integer operand."""
_RELATIONS: Mapping[ComparisonKind, Fn] = {
    ComparisonKind.EQUAL: Fn.EQ,
    ComparisonKind.NOT_EQUAL: Fn.NE,
    ComparisonKind.LESS: Fn.LT,
    ComparisonKind.LESS_EQUAL: Fn.LE,
    ComparisonKind.GREATER: Fn.GT,
    ComparisonKind.GREATER_EQUAL: Fn.GE,
}


def activated(x: Expr, activation: Activation) -> Expr | None:
    """`x` with a fused activation; None if it has no expression."""
    value = activation.value
    if activation is Activation.TANH and x.kind is Kind.F32:
        return Apply(Fn.TANH, (x,))
    return None if value.function is not None else clamp(x, value.low, value.high)


def real(op: Op, types: CallTypes) -> bool:
    """Whether an operation is element-wise, uses only float32 and has an expression."""
    present = (*types.inputs, *types.outputs)
    return all(t is None or t.dtype is DType.FLOAT32 for t in present) and supported(op, types)


def supported(op: Op, types: CallTypes) -> bool:
    """Whether an operation is element-wise and has an expression for its element types."""
    present = [t for t in (*types.inputs, *types.outputs) if t is not None]
    if not types.outputs or not KINDS.keys() >= {t.dtype for t in present}:
        return False
    if isinstance(op, Cast | Select):
        return True
    if isinstance(op, Comparison):
        return op.kind in _RELATIONS and (not comparable.differ(types) or comparable.supported(types))
    if any(t.quantization is not None and t.dtype.is_integer for t in present) and not _by_what_is_stored(op, types):
        return False
    kind = KINDS[present[0].dtype]
    if isinstance(op, Unary):
        return op.kind in UNARY and kind in UNARY[op.kind][1]
    if isinstance(op, Binary):
        return _supported_binary(op, kind)
    return kind in (_NUMBERS if isinstance(op, AddN) else _REALS) and isinstance(op, AddN | LeakyRelu | PRelu)


def _by_what_is_stored(op: Op, types: CallTypes) -> bool:
    """Whether an operation works on stored values, regardless of scales."""
    if isinstance(op, Unary):
        return op.kind is UnaryKind.NEG
    if not isinstance(op, Binary):
        return False
    wide = types.input(0).dtype in (DType.INT32, DType.INT64)
    alike = types.input(0).quantization == types.input(1).quantization == types.output.quantization
    extreme = op.kind in (BinaryKind.MAXIMUM, BinaryKind.MINIMUM) and alike
    return wide or extreme or op.kind in STORED


def _supported_binary(op: Binary, kind: Kind) -> bool:
    if op.kind not in BINARY or kind not in BINARY[op.kind][1]:
        return False
    if kind is not Kind.F32:
        return op.activation is Activation.NONE
    return op.activation is Activation.TANH or op.activation.value.function is None


def rule_of(op: Op, types: CallTypes) -> str | None:
    """The error for an element for which an operation is undefined; None if the operation checks no elements."""
    if not isinstance(op, Binary) or op.kind not in _RULES or types.output.dtype.is_float:
        return None
    operand = types.input(1).value
    if operand is None or operand.size != 1:
        return _RULES[op.kind]
    (one,) = operand.reshape(-1).tolist()
    return _RULES[op.kind] if (one < 0 if op.kind is BinaryKind.POW else one == 0) else None


def expression(op: Op, args: list[Expr], types: CallTypes) -> Expr:
    """The tree of a supported operation, from the trees of its operands."""
    if isinstance(op, Unary):
        return UNARY[op.kind][0](args[0])
    if isinstance(op, Binary):
        return _of_binary(op, args)
    if isinstance(op, Comparison):
        if comparable.differ(types):
            args = [comparable.comparable(x, types.input(i)) for i, x in enumerate(args)]
        return Apply(_RELATIONS[op.kind], tuple(args), Kind.BOOL)
    if isinstance(op, Select):
        return Apply(Fn.SELECT, tuple(args), args[1].kind)
    if isinstance(op, Cast):
        kind = KINDS[op.to]
        if args[0].kind is Kind.F32 and op.to in BYTES:
            return _byte(as_byte(args[0], op.to), op.to)
        return args[0] if args[0].kind is kind else Apply(Fn.CAST, (args[0],), kind)
    if isinstance(op, AddN):
        total = args[0]
        for x in args[1:]:
            total = Apply(Fn.ADD, (total, x), x.kind)
        return total
    alpha: Expr = Const(op.alpha) if isinstance(op, LeakyRelu) else args[1]
    negative = Apply(Fn.LT, (args[0], Const(0.0)), Kind.BOOL)
    return Apply(Fn.SELECT, (negative, Apply(Fn.MUL, (args[0], alpha)), args[0]))


def as_byte(x: Expr, dtype: DType) -> Expr:
    """A float tree that is converted to bytes, without their bounds and with its last division optimised."""
    low, high = dtype.limits
    for fn, bound in ((Fn.MINIMUM, high), (Fn.MAXIMUM, low)):
        if isinstance(x, Apply) and x.fn is fn and x.args[1] == Const(float(bound)):
            x = x.args[0]
    more = x.args[1:] if isinstance(x, Apply) and x.fn is Fn.ADD else ()
    rounded = x.args[0] if isinstance(x, Apply) and more else x
    zero = more[0] if more else Const(0.0)
    if not isinstance(rounded, Apply) or rounded.fn is not Fn.ROUND or not isinstance(zero, Const):
        return x
    (ratio,) = rounded.args
    if not isinstance(ratio, Apply) or ratio.fn is not Fn.DIV or not isinstance(ratio.args[1], Const):
        return x
    both = reciprocal(np.float32(ratio.args[1].value), 2 * (high - low)) if low <= zero.value <= high else None
    if both is None:
        return x
    whole = Apply(Fn.ROUND, (Apply(Fn.WHOLE_OF, (*ratio.args, *(Const(float(part)) for part in both))),))
    return Apply(Fn.ADD, (whole, *more)) if more else whole


_NEAR = 2.0**21
"""Well within the range of `WHOLE_BYTE`."""


def _byte(x: Expr, dtype: DType) -> Expr:
    """A float tree converted to bytes; one that is rounded, with a zero point added before or after, in one step.

    A float out of range is bounded before it is rounded, which changes no result. NaN becomes the greatest byte.
    """
    kind, zero, inside = KINDS[dtype], 0.0, x
    if isinstance(x, Apply) and x.fn is Fn.ADD and isinstance(x.args[1], Const):
        inside, zero = x.args[0], float(x.args[1].value)
    (low, high) = dtype.limits
    if not isinstance(inside, Apply) or inside.fn is not Fn.ROUND or not (low <= zero <= high and zero.is_integer()):
        return Apply(Fn.CAST, (x,), kind)
    (real,) = inside.args
    known = bounds(real)
    if known is None or max(map(abs, known)) > _NEAR:
        real = Apply(Fn.MAX, (Apply(Fn.MIN, (real, Const(high - zero))), Const(low - zero)))
    return Apply(Fn.WHOLE_BYTE, (real, Const(int(zero), Kind.I32)), kind)


def _of_binary(op: Binary, args: list[Expr]) -> Expr:
    found = activated(BINARY[op.kind][0](args[0], args[1]), op.activation)
    assert found is not None
    return found


def reach_of(own: Shape, whole: Shape) -> Reach | None:
    """How a tensor broadcasts to results, for kernels with few forms; None for other forms."""
    if not are_broadcast(own, whole):
        return Reach.FULL
    padded = (1,) * (len(whole) - len(own)) + own
    if are_ones(padded):
        return Reach.SCALAR
    if are_ones(padded[:-1]) and not is_broadcast(padded[-1], whole[-1]):
        return Reach.ROW
    if are_ones(padded[-1:]) and not are_broadcast(padded[:-1], whole[:-1]):
        return Reach.COLUMN
    return None
