"""Element-wise arithmetic as a value: the tree that epilogues and fused loops compute per element."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.irbuilder import F32, I1, I8, I16, I32, I64, Kernel, Type, Val, View, vec
from onert_llvm.irbuilder import math as vm


class Kind(Enum):
    """The element types of values. A boolean is a byte in memory, 0 or 1, and one bit in a register."""

    F32 = "f32"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
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
        return self not in (Kind.U8, Kind.BOOL)

    def load(self, place: View, lanes: int, mask: Val | None) -> Val:
        """Elements of this kind from memory."""
        found = place.load(lanes, mask)
        return found.ne(0) if self is Kind.BOOL else found

    def store(self, value: Val, place: View, mask: Val | None) -> None:
        """Elements of this kind to memory."""
        place.store(value.cast(I8, signed=False) if self is Kind.BOOL else value, mask)


_MEMORY = {Kind.F32: F32, Kind.I64: I64, Kind.I32: I32, Kind.I16: I16, Kind.I8: I8, Kind.U8: I8, Kind.BOOL: I8}


class Fn(Enum):
    """A function of lanes: of float32, of integers, or of either; relations and logic give booleans.

    `MIN` and `MAX` give the second where the first is not a number, `MINIMUM` and `MAXIMUM` not-a-number where either
    is none. `QUOTIENT` truncates; its divisor is neither 0 nor -1. `CAST` converts: floats truncate and saturate.
    """

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    QUOTIENT = "quotient"
    MIN = "min"
    MAX = "max"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    NEG = "neg"
    ABS = "abs"
    SIGN = "sign"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    EXP = "exp"
    ELU = "elu"
    LOG = "log"
    SIN = "sin"
    COS = "cos"
    TANH = "tanh"
    LOGISTIC = "logistic"
    ERF = "erf"
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
    SELECT = "select"
    CAST = "cast"


@frozen
class Leaf(Value):
    """An input of the tree by name; whoever evaluates the tree knows what it is."""

    name: str
    kind: Kind = Kind.F32


@frozen
class Const(Value):
    """A number."""

    value: float | int
    kind: Kind = Kind.F32


@frozen(cache_hash=True)
class Apply:
    """A function of the values of other trees; `kind` is that of its result."""

    fn: Fn
    args: tuple[Expr, ...]
    kind: Kind = Kind.F32


Expr = Leaf | Const | Apply


def _sign(k: Kernel, a: Val) -> Val:
    """1, -1, 0 for zeros of either sign, or NaN."""
    nothing = a + 0.0 if a.is_float else a
    return (a > 0).select(a.like(1), (a < 0).select(a.like(-1), nothing))


_EMIT: dict[Fn, Callable[..., Val]] = {
    Fn.ADD: lambda k, a, b: a + b,
    Fn.SUB: lambda k, a, b: a - b,
    Fn.MUL: lambda k, a, b: a * b,
    Fn.DIV: lambda k, a, b: a / b,
    Fn.QUOTIENT: lambda k, a, b: a.quotient(b),
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
    Fn.FLOOR: vm.floor,
    Fn.CEIL: vm.ceil,
    Fn.ROUND: vm.round_even,
    Fn.EQ: lambda k, a, b: a.eq(b),
    Fn.NE: lambda k, a, b: a.ne(b),
    Fn.LT: lambda k, a, b: a < b,
    Fn.LE: lambda k, a, b: a <= b,
    Fn.GT: lambda k, a, b: a > b,
    Fn.GE: lambda k, a, b: a >= b,
    Fn.NOT: lambda k, a: a ^ a.like(1),
    Fn.AND: lambda k, a, b: a & b,
    Fn.OR: lambda k, a, b: a | b,
    Fn.XOR: lambda k, a, b: a ^ b,
    Fn.SELECT: lambda k, a, b, c: a.select(b, c),
}


def _cast(k: Kernel, x: Val, old: Kind, new: Kind) -> Val:
    if new is Kind.BOOL:
        return x.ne(0)
    if old is Kind.F32 and new is not Kind.F32:
        high = (1 << int(new.register.width) - new.signed) - 1  # what TFLite's kernels give for NaN
        return x.ne(x).select(k.const(vec(new.register, x.lanes), high), x.saturated(new.register, new.signed))
    return x.cast(new.register, old.signed)


def evaluate(k: Kernel, tree: Expr, leaf: Callable[[str], Val], like: Val) -> Val:
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
            else:
                done[e] = _EMIT[e.fn](k, *(value(a) for a in e.args))
        return done[e]

    return value(tree)


_CHEAP = {Fn.ADD, Fn.SUB, Fn.MUL, Fn.MIN, Fn.MAX, Fn.NEG, Fn.ABS, Fn.LT, Fn.LE, Fn.GT, Fn.GE, Fn.SELECT}
_FEW = 6
"""Functions of one instruction, and how many of them are little code."""


def is_little(tree: Expr) -> bool:
    """Whether the code for a tree is a few instructions."""
    found: list[Fn] = []

    def walk(e: Expr) -> None:
        if isinstance(e, Apply):
            found.append(e.fn)
            for arg in e.args:
                walk(arg)

    walk(tree)
    return len(found) <= _FEW and _CHEAP.issuperset(found)


def leaves(tree: Expr) -> tuple[str, ...]:
    """The names of the tree's inputs, each once, in the order of their first use."""
    return tuple(kinds(tree))


def kinds(tree: Expr) -> dict[str, Kind]:
    """The kinds of the tree's inputs by name, in the order of their first use."""
    if isinstance(tree, Leaf):
        return {tree.name: tree.kind}
    if isinstance(tree, Const):
        return {}
    return {name: kind for a in tree.args for name, kind in kinds(a).items()}


def clamp(x: Expr, low: float | None, high: float | None) -> Expr:
    """`x` kept between two bounds, either of which may be missing; what is not a number stays so."""
    if low is not None:
        x = Apply(Fn.MAX, (Const(low, x.kind), x), x.kind)
    return x if high is None else Apply(Fn.MIN, (Const(high, x.kind), x), x.kind)


def hard_swish(x: Expr) -> Expr:
    """`x * relu6(x + 3) / 6`."""
    gate = clamp(Apply(Fn.ADD, (x, Const(3.0))), 0.0, 6.0)
    return Apply(Fn.MUL, (Apply(Fn.MUL, (x, gate)), Const(1 / 6)))
