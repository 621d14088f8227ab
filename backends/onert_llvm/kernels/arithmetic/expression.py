"""Element-wise arithmetic as an expression tree, which epilogues and fused loops evaluate per element."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.irbuilder import F32, F64, I1, I8, I16, I32, I64, Kernel, Type, Val, View, intrinsic, vec
from onert_llvm.irbuilder import double_math as dm
from onert_llvm.irbuilder import math as vm
from onert_llvm.irbuilder import wide_math as wm
from onert_llvm.irbuilder.text import constant

from . import integers


class Kind(Enum):
    """The element types of values. A boolean is a byte in memory, 0 or 1, and one bit in a register."""

    F64 = "f64"
    F32 = "f32"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U64 = "u64"
    U32 = "u32"
    U16 = "u16"
    U8 = "u8"
    BOOL = "bool"

    @property
    def memory(self) -> Type:
        return _MEMORY[self]

    @property
    def register(self) -> Type:
        return I1 if self is Kind.BOOL else _MEMORY[self]

    @property
    def signed(self) -> bool:
        return self is not Kind.BOOL and not self.unsigned

    @property
    def unsigned(self) -> bool:
        return self in (Kind.U8, Kind.U16, Kind.U32, Kind.U64)

    @property
    def is_float(self) -> bool:
        return self in (Kind.F32, Kind.F64)

    def load(self, place: View, lanes: int, mask: Val | None) -> Val:
        """Load elements of this kind."""
        found = place.load(lanes, mask)
        return found.ne(0) if self is Kind.BOOL else found

    def store(self, value: Val, place: View, mask: Val | None) -> None:
        """Store elements of this kind."""
        place.store(value.cast(I8, signed=False) if self is Kind.BOOL else value, mask)


_MEMORY = {
    Kind.F64: F64,
    Kind.F32: F32,
    **dict.fromkeys((Kind.I64, Kind.U64), I64),
    **dict.fromkeys((Kind.I32, Kind.U32), I32),
    **dict.fromkeys((Kind.I16, Kind.U16), I16),
    **dict.fromkeys((Kind.I8, Kind.U8, Kind.BOOL), I8),
}


class Fn(Enum):
    """A function of lanes: of floats, of integers, or of either; comparisons and logic return booleans.

    `MIN` and `MAX` return the second argument if the first is NaN, `MINIMUM` and `MAXIMUM` NaN if either is. `QUOTIENT`
    truncates and wraps; its result for a divisor of 0 is unspecified. `NONZERO` and `NONNEGATIVE` return their argument
    and report elements that violate the condition. `SHL` and `SHR` shift by any number, as if bit by bit. `CAST`
    converts; floats truncate and saturate. `WHOLE_OF` divides by its second argument, in cases where the result is then
    rounded to integers in a byte's range; its other arguments are two floats whose sum is the inverse. `WHOLE_BYTE` is
    the nearest integer of a float32 below 2**22, halves to even, plus a zero point, saturated to a byte.
    """

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    WHOLE_OF = "whole_of"
    WHOLE_BYTE = "whole_byte"
    QUOTIENT = "quotient"
    NONZERO = "nonzero"
    NONNEGATIVE = "nonnegative"
    FMOD = "fmod"
    POW = "pow"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    ATAN2 = "atan2"
    MIN = "min"
    MAX = "max"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    NEG = "neg"
    ABS = "abs"
    SIGN = "sign"
    SQRT = "sqrt"
    CBRT = "cbrt"
    RSQRT = "rsqrt"
    EXP = "exp"
    ELU = "elu"
    LOG = "log"
    SIN = "sin"
    COS = "cos"
    TANH = "tanh"
    LOGISTIC = "logistic"
    ERF = "erf"
    GELU = "gelu"
    SOFTPLUS = "softplus"
    MISH_FACTOR = "mish_factor"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    NOT = "not"
    AND = "and"
    OR = "or"
    XOR = "xor"
    SHL = "shl"
    SHR = "shr"
    SELECT = "select"
    CAST = "cast"


@frozen
class Leaf(Value):
    """A named input of the tree, resolved by the evaluator."""

    name: str
    kind: Kind = Kind.F32


@frozen
class Const(Value):
    """A constant."""

    value: float | int
    kind: Kind = Kind.F32


@frozen(cache_hash=True)
class Apply:
    """A function of the values of other trees; `kind` is that of its result."""

    fn: Fn
    args: tuple[Expr, ...]
    kind: Kind = Kind.F32


Expr = Leaf | Const | Apply

CHECKS = (Fn.NONZERO, Fn.NONNEGATIVE)
"""Functions that report elements."""

Broken = Callable[[Val, Val], None]
"""Receives the mask of lanes that break a rule, and an offending element if there is one."""


def _sign(k: Kernel, a: Val) -> Val:
    """1, -1, 0 for zeros of either sign, or NaN."""
    nothing = a + 0.0 if a.is_float else a
    return (a > 0).select(a.like(1), (a < 0).select(a.like(-1), nothing))


def _not(a: Val) -> Val:
    return a ^ a.like(1)


_EMIT: dict[Fn, Callable[..., Val]] = {
    Fn.ADD: lambda k, a, b: a + b,
    Fn.SUB: lambda k, a, b: a - b,
    Fn.MUL: lambda k, a, b: a * b,
    Fn.DIV: lambda k, a, b: a / b,
    Fn.WHOLE_OF: lambda k, a, b, first, rest: a.call("fma", first, a * rest) if k.isa.fma else a / b,
    Fn.QUOTIENT: integers.quotient,
    Fn.FMOD: wm.fmod,
    Fn.POW: lambda k, a, b: wm.power(k, a, b) if a.is_float else integers.power(k, a, b),
    Fn.ASIN: wm.asin,
    Fn.ACOS: wm.acos,
    Fn.ATAN: wm.atan,
    Fn.ATAN2: wm.atan2,
    Fn.CBRT: wm.cbrt,
    Fn.MIN: lambda k, a, b: a.min(b),
    Fn.MAX: lambda k, a, b: a.max(b),
    Fn.MINIMUM: lambda k, a, b: a.minimum(b),
    Fn.MAXIMUM: lambda k, a, b: a.maximum(b),
    Fn.NEG: lambda k, a: -a,
    Fn.ABS: lambda k, a: a.call("fabs") if a.is_float else a.max(-a),
    Fn.SIGN: _sign,
    Fn.SQRT: lambda k, a: a.call("sqrt"),
    Fn.RSQRT: lambda k, a: a.like(1.0) / a.call("sqrt"),
    Fn.EXP: vm.exp,
    Fn.ELU: lambda k, a: (a < 0.0).select(vm.expm1(k, a), a),
    Fn.LOG: vm.log,
    Fn.SIN: vm.sin,
    Fn.COS: vm.cos,
    Fn.TANH: vm.tanh,
    Fn.LOGISTIC: vm.logistic,
    Fn.ERF: vm.erf,
    Fn.GELU: vm.gelu,
    Fn.SOFTPLUS: vm.softplus,
    Fn.MISH_FACTOR: vm.mish_factor,
    Fn.FLOOR: vm.floor,
    Fn.CEIL: vm.ceil,
    Fn.ROUND: vm.round_even,
    Fn.EQ: lambda k, a, b: a.eq(b),
    Fn.NE: lambda k, a, b: a.ne(b),
    Fn.LT: lambda k, a, b: a < b,
    Fn.LE: lambda k, a, b: a <= b,
    Fn.GT: lambda k, a, b: a > b,
    Fn.GE: lambda k, a, b: a >= b,
    Fn.NOT: lambda k, a: _not(a),
    Fn.AND: lambda k, a, b: a & b,
    Fn.OR: lambda k, a, b: a | b,
    Fn.XOR: lambda k, a, b: a ^ b,
    Fn.SHL: lambda k, a, b: integers.shifted(a, b, left=True),
    Fn.SHR: lambda k, a, b: a >> b.umin(a.type.width - 1),
    Fn.SELECT: lambda k, a, b, c: a.select(b, c),
}
_UNSIGNED: dict[Fn, Callable[..., Val]] = {
    Fn.QUOTIENT: integers.unsigned_quotient,
    **dict.fromkeys((Fn.MIN, Fn.MINIMUM), lambda k, a, b: a.umin(b)),
    **dict.fromkeys((Fn.MAX, Fn.MAXIMUM), lambda k, a, b: a.umax(b)),
    Fn.ABS: lambda k, a: a,
    Fn.SIGN: lambda k, a: a.umin(1),
    Fn.LT: lambda k, a, b: a.ult(b),
    Fn.LE: lambda k, a, b: _not(b.ult(a)),
    Fn.GT: lambda k, a, b: b.ult(a),
    Fn.GE: lambda k, a, b: _not(a.ult(b)),
    Fn.SHR: lambda k, a, b: integers.shifted(a, b, left=False),
}
"""Functions whose code differs for unsigned numbers."""
_DOUBLE: dict[Fn, Callable[..., Val]] = {
    Fn.FMOD: dm.fmod,
    Fn.POW: dm.power,
    Fn.ATAN2: dm.atan2,
    Fn.LOG: dm.log,
    Fn.SIN: dm.sin,
    Fn.COS: dm.cos,
    Fn.ERF: dm.erf,
    Fn.TANH: dm.tanh,
}
"""Functions whose code differs for float64."""


def _cast(k: Kernel, x: Val, old: Kind, new: Kind) -> Val:
    if new is Kind.BOOL:
        return x.ne(0)
    if old.is_float and not new.is_float:
        width = int(new.register.width)
        high = (1 << width - new.signed) - 1  # TFLite's result for NaN
        if width <= 16:  # saturate as floats: few targets have an instruction for narrow lanes
            low = -high - 1 if new.signed else 0
            return x.ne(x).select(float(high), x.clamp(float(low), float(high))).cast(I32).cast(new.register)
        inside = x < 2.0 ** (width - new.signed)  # false for NaN
        some = inside.select(x.max(-(2.0 ** (width - 1)) if new.signed else 0.0), x.like(0.0))
        return inside.select(some.cast(new.register, new.signed), k.const(vec(new.register, x.lanes), high))
    return x.cast(new.register, old.signed)


def _whole_byte(k: Kernel, x: Val, zero: Val, kind: Kind) -> Val:
    low, high = (0, 255) if kind.unsigned else (-128, 127)
    return (vm.nearest_even(k, x) + zero).clamp(low, high).cast(I8)


def _checked(e: Apply, x: Val, broken: Broken | None) -> Val:
    if broken is None:
        raise ValueError(f"{e.fn.value} reports elements, but nothing receives the reports")
    if e.fn is Fn.NONZERO:
        broken(x.eq(0), Val(x.b, constant(x.type.element, 0)))
        return x
    least = x if x.lanes == 1 else intrinsic(x.b, f"llvm.vector.reduce.smin.{x.type.suffix}", x.type.element, x)
    broken(x < 0, least)
    return x


def evaluate(k: Kernel, tree: Expr, leaf: Callable[[str], Val], like: Val, broken: Broken | None = None) -> Val:
    """The tree's value in as many lanes as `like` has; equal subtrees are computed once."""
    done: dict[Expr, Val] = {}

    def value(e: Expr) -> Val:
        if e not in done:
            if isinstance(e, Leaf):
                done[e] = leaf(e.name)
            elif isinstance(e, Const):
                done[e] = k.const(vec(e.kind.register, like.lanes), e.value)
            elif e.fn is Fn.CAST:
                done[e] = _cast(k, value(e.args[0]), e.args[0].kind, e.kind)
            elif e.fn is Fn.WHOLE_BYTE:
                done[e] = _whole_byte(k, value(e.args[0]), value(e.args[1]), e.kind)
            elif e.fn in CHECKS:
                done[e] = _checked(e, value(e.args[0]), broken)
            else:
                kind = e.args[0].kind
                emit = _UNSIGNED.get(e.fn) if kind.unsigned else _DOUBLE.get(e.fn) if kind is Kind.F64 else None
                done[e] = (emit or _EMIT[e.fn])(k, *(value(a) for a in e.args))
        return done[e]

    return value(tree)


_CHEAP = {Fn.ADD, Fn.SUB, Fn.MUL, Fn.MIN, Fn.MAX, Fn.NEG, Fn.ABS, Fn.LT, Fn.LE, Fn.GT, Fn.GE, Fn.SELECT}
_FEW = 6
"""Single-instruction functions, and the most of them that count as little code."""


def is_cheap(tree: Expr) -> bool:
    """Whether a tree takes only a few instructions."""
    found: list[Fn] = []

    def walk(e: Expr) -> None:
        if isinstance(e, Apply):
            found.append(e.fn)
            for arg in e.args:
                walk(arg)

    walk(tree)
    return len(found) <= _FEW and _CHEAP.issuperset(found)


def checked(tree: Expr) -> bool:
    """Whether evaluating the tree checks elements."""
    return isinstance(tree, Apply) and (tree.fn in CHECKS or any(map(checked, tree.args)))


def leaves(tree: Expr) -> tuple[str, ...]:
    """The names of the tree's inputs, without duplicates, in the order of first use."""
    return tuple(kinds(tree))


def kinds(tree: Expr) -> dict[str, Kind]:
    """The kinds of the tree's inputs by name, in the order of first use."""
    if isinstance(tree, Leaf):
        return {tree.name: tree.kind}
    if isinstance(tree, Const):
        return {}
    return {name: kind for a in tree.args for name, kind in kinds(a).items()}


def clamp(x: Expr, low: float | None, high: float | None) -> Expr:
    """`x` clamped to two bounds, either of which may be missing; NaN stays NaN."""
    if low is not None:
        x = Apply(Fn.MAX, (Const(low, x.kind), x), x.kind)
    return x if high is None else Apply(Fn.MIN, (Const(high, x.kind), x), x.kind)


def hard_swish(x: Expr) -> Expr:
    """`x * relu6(x + 3) / 6`."""
    gate = clamp(Apply(Fn.ADD, (x, Const(3.0))), 0.0, 6.0)
    return Apply(Fn.MUL, (Apply(Fn.MUL, (x, gate)), Const(1 / 6)))
