"""Elementwise functions of one operand or of two that broadcast, and selections.

Recipes are composed of `FUNCTIONS` too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onert.frontend.flow.emitter import Emitter, Node, Rule
from onert.ir import DType
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import UnaryKind, unary_kinds

Function = tuple[int, Callable[..., int]]
"""The number of arguments, and a function that adds the operations, given an `Emitter` and that many operands."""


def _unary(kind: UnaryKind) -> Function:
    return 1, lambda e, x: e.unary(kind, x)


def _rounding(kind: UnaryKind) -> Function:
    """A rounding function, which returns integers unchanged."""
    return 1, lambda e, x: e.add(Copy(), x) if e.dtype(x).is_integer else e.unary(kind, x)


def _of_reciprocal(kind: UnaryKind) -> Function:
    return 1, lambda e, x: e.unary(kind, e.reciprocal(x))


def _reciprocal_of(kind: UnaryKind) -> Function:
    return 1, lambda e, x: e.reciprocal(e.unary(kind, x))


def _binary(kind: BinaryKind) -> Function:
    return 2, lambda e, x, y: e.binary(kind, x, y)


def _compared(kind: ComparisonKind) -> Function:
    return 2, lambda e, x, y: e.add(Comparison(kind), x, y)


def _logical(kind: BinaryKind) -> Function:
    """Operands are true if they are not 0; the result is 1 or 0 in their element type."""
    return 2, lambda e, x, y: e.cast(e.binary(kind, e.truth(x), e.truth(y)), e.dtype(x))


def _scaled(kind: UnaryKind, before: float = 1, after: float = 1) -> Function:
    def add(e: Emitter, x: int) -> int:
        inside = x if before == 1 else e.binary(BinaryKind.MUL, x, e.like(x, before))
        found = e.unary(kind, inside)
        return found if after == 1 else e.binary(BinaryKind.MUL, found, e.like(found, after))

    return 1, add


_LN2 = 0.6931471805599453


def _multiply_add(x: int, y: int, z: int, kind: BinaryKind) -> Function:
    """`x · y ± z`; the parameters are the positions of the arguments, counted from 1."""

    def add(e: Emitter, *arguments: int) -> int:
        product = e.binary(BinaryKind.MUL, arguments[x - 1], arguments[y - 1])
        return e.binary(kind, product, arguments[z - 1])

    return 3, add


def _and_not(e: Emitter, x: int, y: int) -> int:
    """`not x and y`, like the instruction of that name."""
    both = e.binary(BinaryKind.LOGICAL_AND, e.unary(UnaryKind.LOGICAL_NOT, e.truth(x)), e.truth(y))
    return e.cast(both, e.dtype(x))


def _softsign(e: Emitter, x: int) -> int:
    return e.binary(BinaryKind.DIV, x, e.binary(BinaryKind.ADD, e.unary(UnaryKind.ABS, x), e.like(x, 1)))


_UNARY = unary_kinds(
    "Abs Neg Sign Square Sqrt Rsqrt Exp Log Erf Relu Softplus Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh "
    "Asinh Acosh Atanh"
)
FUNCTIONS: Mapping[str, Function] = {
    **{name: _unary(kind) for name, kind in _UNARY.items()},
    "Id": (1, lambda e, x: e.add(Copy(), x)),
    "Reciprocal": (1, lambda e, x: e.reciprocal(x)),
    "Exp2": _scaled(UnaryKind.EXP, before=_LN2),
    "Log2": _scaled(UnaryKind.LOG, after=1 / _LN2),
    "Sigmoid": _unary(UnaryKind.LOGISTIC),
    "Gelu": _unary(UnaryKind.GELU_TANH),
    "Softsign": (1, _softsign),
    "LogSigmoid": (1, lambda e, x: e.unary(UnaryKind.NEG, e.unary(UnaryKind.SOFTPLUS, e.unary(UnaryKind.NEG, x)))),
    "Cot": _reciprocal_of(UnaryKind.TAN),
    "Sec": _reciprocal_of(UnaryKind.COS),
    "Csc": _reciprocal_of(UnaryKind.SIN),
    "Acot": _of_reciprocal(UnaryKind.ATAN),
    "Asec": _of_reciprocal(UnaryKind.ACOS),
    "Acsc": _of_reciprocal(UnaryKind.ASIN),
    "Coth": _reciprocal_of(UnaryKind.TANH),
    "Sech": _reciprocal_of(UnaryKind.COSH),
    "Csch": _reciprocal_of(UnaryKind.SINH),
    "Acoth": _of_reciprocal(UnaryKind.ATANH),
    "Asech": _of_reciprocal(UnaryKind.ACOSH),
    "Acsch": _of_reciprocal(UnaryKind.ASINH),
    "Floor": _rounding(UnaryKind.FLOOR),
    "Ceil": _rounding(UnaryKind.CEIL),
    "Round": _rounding(UnaryKind.ROUND),
    "Trunc": _rounding(UnaryKind.TRUNC),
    "Add": _binary(BinaryKind.ADD),
    "Sub": _binary(BinaryKind.SUB),
    "Mul": _binary(BinaryKind.MUL),
    "Div": _binary(BinaryKind.DIV),
    "Mod": _binary(BinaryKind.REMAINDER),
    "Minimum": _binary(BinaryKind.MINIMUM),
    "Maximum": _binary(BinaryKind.MAXIMUM),
    "Pow": _binary(BinaryKind.POW),
    "MulAdd132": _multiply_add(1, 3, 2, BinaryKind.ADD),
    "MulAdd213": _multiply_add(2, 1, 3, BinaryKind.ADD),
    "MulAdd231": _multiply_add(2, 3, 1, BinaryKind.ADD),
    "MulSub132": _multiply_add(1, 3, 2, BinaryKind.SUB),
    "MulSub213": _multiply_add(2, 1, 3, BinaryKind.SUB),
    "MulSub231": _multiply_add(2, 3, 1, BinaryKind.SUB),
    "CmpEq": _compared(ComparisonKind.EQUAL),
    "CmpNe": _compared(ComparisonKind.NOT_EQUAL),
    "CmpLt": _compared(ComparisonKind.LESS),
    "CmpLe": _compared(ComparisonKind.LESS_EQUAL),
    "CmpGt": _compared(ComparisonKind.GREATER),
    "CmpGe": _compared(ComparisonKind.GREATER_EQUAL),
    "And": _logical(BinaryKind.LOGICAL_AND),
    "Or": _logical(BinaryKind.LOGICAL_OR),
    "Xor": _logical(BinaryKind.BITWISE_XOR),
    "AndNot": (2, _and_not),
    "Not": (1, lambda e, x: e.cast(e.unary(UnaryKind.LOGICAL_NOT, e.truth(x)), e.dtype(x))),
    "Cond": (3, lambda e, condition, x, y: e.add(Select(), e.truth(condition), x, y)),
    "Select": (2, lambda e, condition, x: e.add(Select(), e.truth(condition), x, e.like(x, 0))),
}
"""Elementwise functions by their names in recipes; comparisons return booleans."""

RENAMED = {
    "Equal": "CmpEq",
    "NotEqual": "CmpNe",
    "Less": "CmpLt",
    "LessEqual": "CmpLe",
    "Greater": "CmpGt",
    "GreaterEqual": "CmpGe",
    "Identity": "Id",
}
"""Types of operations whose function has another name in recipes; the others have the same name in both."""


def _operation(function: Function) -> Rule:
    count, add = function

    def rule(e: Emitter, node: Node) -> int:
        node.require_inputs(count)
        return add(e, *node.inputs)

    return rule


def _cast(e: Emitter, node: Node) -> int:
    """Cast to the declared type of the result; the operation's type names the source: CastFloat casts floats."""
    node.require_inputs(1)
    dtype = node.result.dtype
    return e.add(Copy(), node.inputs[0]) if e.dtype(node.inputs[0]) is dtype else e.cast(node.inputs[0], dtype)


CASTS: Mapping[str, DType] = {
    "CastFloat": DType.FLOAT32,
    "CastDouble": DType.FLOAT64,
    "CastByte": DType.INT8,
    "CastShort": DType.INT16,
    "CastInt": DType.INT32,
    "CastLong": DType.INT64,
}
"""Types of cast operations, and the type they cast from."""

RULES: Mapping[str, Rule] = {
    **{name: _operation(function) for name, function in FUNCTIONS.items() if not name.startswith("Cmp")},
    **{name: _operation(FUNCTIONS[function]) for name, function in RENAMED.items()},
    **dict.fromkeys((*CASTS, "Cast"), _cast),
}
