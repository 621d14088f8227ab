"""Element-wise arithmetic as a value: the tree that epilogues and fused loops compute per element."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from onert_llvm.build import Kernel, Val
from onert_llvm.build import math as vm


class Fn(Enum):
    """A function of float32 lanes."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    MIN = "min"
    MAX = "max"
    NEG = "neg"
    ABS = "abs"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    EXP = "exp"
    LOG = "log"
    TANH = "tanh"
    LOGISTIC = "logistic"
    ERF = "erf"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"


@frozen
class Leaf:
    """An input of the tree by name; whoever evaluates the tree knows what it is."""

    name: str


@frozen
class Const:
    """A number."""

    value: float


@frozen
class Apply:
    """A function of the values of other trees."""

    fn: Fn
    args: tuple[Expr, ...]


Expr = Leaf | Const | Apply

_EMIT: dict[Fn, Callable[..., Val]] = {
    Fn.ADD: lambda k, a, b: a + b,
    Fn.SUB: lambda k, a, b: a - b,
    Fn.MUL: lambda k, a, b: a * b,
    Fn.DIV: lambda k, a, b: a / b,
    Fn.MIN: lambda k, a, b: a.min(b),
    Fn.MAX: lambda k, a, b: a.max(b),
    Fn.NEG: lambda k, a: -a,
    Fn.ABS: lambda k, a: a.call("fabs"),
    Fn.SQRT: lambda k, a: a.call("sqrt"),
    Fn.RSQRT: lambda k, a: a.like(1.0) / a.call("sqrt"),
    Fn.EXP: vm.exp,
    Fn.LOG: vm.log,
    Fn.TANH: vm.tanh,
    Fn.LOGISTIC: vm.logistic,
    Fn.ERF: vm.erf,
    Fn.FLOOR: vm.floor,
    Fn.CEIL: vm.ceil,
    Fn.ROUND: vm.round_even,
}


def evaluate(k: Kernel, tree: Expr, leaf: Callable[[str], Val], kind: Val) -> Val:
    """The tree's value in lanes like those of `kind`; equal subtrees are computed once."""
    done: dict[Expr, Val] = {}

    def value(e: Expr) -> Val:
        if e not in done:
            if isinstance(e, Leaf):
                done[e] = leaf(e.name)
            elif isinstance(e, Const):
                done[e] = kind.like(e.value)
            else:
                done[e] = _EMIT[e.fn](k, *(value(a) for a in e.args))
        return done[e]

    return value(tree)


def leaves(tree: Expr) -> tuple[str, ...]:
    """The names of the tree's inputs, each once, in the order of their first use."""
    if isinstance(tree, Leaf):
        return (tree.name,)
    if isinstance(tree, Const):
        return ()
    return tuple(dict.fromkeys(name for a in tree.args for name in leaves(a)))


def clamp(x: Expr, low: float | None, high: float | None) -> Expr:
    """`x` kept between two bounds, either of which may be missing."""
    if low is not None:
        x = Apply(Fn.MAX, (x, Const(low)))
    return x if high is None else Apply(Fn.MIN, (x, Const(high)))


def hard_swish(x: Expr) -> Expr:
    """`x * relu6(x + 3) / 6`."""
    gate = clamp(Apply(Fn.ADD, (x, Const(3.0))), 0.0, 6.0)
    return Apply(Fn.MUL, (Apply(Fn.MUL, (x, gate)), Const(1 / 6)))
