"""The builder's differentiable operations, each with the inputs at which its gradient is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from flow.meanings import UNARY
from onert.flow import DT_INT32, Builder, Variable
from onert.ir import Array

Build = Callable[..., Any]


@frozen(eq=False)
class Derivative:
    """An operation on float64 variables, their shapes and the range of their elements.

    With `apart` the elements are well separated: an operation that compares elements has no derivative where two tie.
    """

    name: str
    build: Build
    shapes: tuple[Sequence[int], ...]
    low: float = -2
    high: float = 2
    apart: bool = False

    def __str__(self) -> str:
        return self.name

    def arrays(self) -> list[Array]:
        """The input arrays, identical in every process."""
        rng = np.random.default_rng(sum(self.name.encode()))
        found = []
        for shape in self.shapes:
            size = int(np.prod(shape))
            if self.apart:
                steps = np.linspace(self.low, self.high, size) if size > 1 else np.full(size, self.high)
                elements = rng.permutation(steps) + rng.uniform(-0.2, 0.2) * (self.high - self.low) / max(size, 2)
            else:
                elements = rng.uniform(self.low, self.high, size)
            found.append(elements.reshape(shape))
        return found


_RANGES = {"Acosh": (1.2, 3), "Asec": (1.2, 3), "Acsc": (1.2, 3), "Acoth": (1.2, 3), "Asech": (0.2, 0.8)}
_METHODS = {"LogSigmoid": "logsigmoid", "Reciprocal": "rcp"}
_FLAT = ("Sign", "Floor", "Ceil", "Round", "Trunc", "Not")


def _unary() -> list[Derivative]:
    found = []
    for optype, (_, (low, high)) in UNARY.items():
        if optype in _FLAT:
            continue
        low, high = _RANGES.get(optype, (max(low, -2), min(high, 2)))
        if low > 0 or optype in ("Asin", "Acos", "Atanh"):
            low, high = max(low, 0.2) if low >= 0 else max(low, -0.8), min(high, 0.8) if high <= 1 else high
        method = _METHODS.get(optype, optype.lower())
        if not hasattr(Builder, method):
            found.append(Derivative(optype, _by_type(optype), ([5],), low, high))
            continue
        found.append(Derivative(optype, _by_method(method), ([5],), low, high, apart=True))
    return found


def _by_type(optype: str) -> Build:
    return lambda f, x: f.op(optype, [x])


def _by_method(method: str, *more: Any, **named: Any) -> Build:
    return lambda f, *given: getattr(f, method)(*given, *more, **named)


def _binary() -> list[Derivative]:
    found = []
    for method, low in (("add", -2), ("sub", -2), ("mul", -2), ("minimum", -2), ("maximum", -2), ("div", 0.5)):
        build, apart = _by_method(method), method.endswith("imum")
        found += [
            Derivative(method, build, ([4], [4]), low, apart=apart),
            Derivative(f"{method} of a row", build, ([2, 3], [3]), low, apart=apart),
            Derivative(f"{method} of all pairs", build, ([2, 1], [1, 3]), low),
            Derivative(f"{method} to a scalar", build, ([], [3]), low),
        ]
    return [
        *found,
        Derivative("mod", _by_method("mod"), ([5], [5]), 0.6, 7.3),
        Derivative("pow", _by_method("pow"), ([4], [4]), 0.5),
        Derivative("pow of a number", lambda f, x: f.pow(x, 3.0), ([4],)),
        Derivative("cond", lambda f, x, y: f.cond(f.const([1.0, 0.0, 2.0], "float64"), x, y), ([3], [2, 3])),
        Derivative(
            "cond of a comparison", lambda f, x, y: f.cond(f.less(x, y), x, f.square(y)), ([4], [4]), apart=True
        ),
        Derivative("select", lambda f, x: f.select(f.const([1.0, 0.0, 2.0], "float64"), x), ([2, 3],)),
        Derivative("clip", lambda f, x: f.clip(x, -1.0, 1.0), ([6],), apart=True),
        Derivative("cast", lambda f, x: f.square(f.cast(f.cast(x, "float32"), "float64")), ([3],)),
    ]


def _product(transposes: str, first: Sequence[int], second: Sequence[int]) -> Derivative:
    """A matrix product with the named operands (a, b) or result (c) transposed."""

    def build(f: Builder, x: Variable, y: Variable) -> Variable:
        a, b = (v.shape[::-1] if letter in transposes else v.shape for v, letter in ((x, "a"), (y, "b")))
        shape = [a[0], b[1]][:: -1 if "c" in transposes else 1]
        result = f.made("MatMul", [x, y], None, shape)
        assert result.producer is not None
        for letter in transposes:
            result.producer.add_attr(f"transpose_{letter}", True)
        return result

    return Derivative(f"matmul, {transposes or 'nothing'} transposed", build, (first, second))


def _arrays() -> list[Derivative]:
    return [
        *(
            _product(t, [3, 2] if "a" in t else [2, 3], [4, 3] if "b" in t else [3, 4])
            for t in ("", "a", "b", "c", "ab", "ac", "bc", "abc")
        ),
        Derivative("matmul in batches", _by_method("matmul"), ([2, 2, 3], [2, 3, 2])),
        Derivative("matmul of one for all", _by_method("matmul"), ([2, 2, 3], [1, 3, 2])),
        Derivative("Linear", lambda f, x, w, b: f.made("Linear", [x, w, b], None, [2, 4]), ([2, 3], [4, 3], [4])),
        Derivative("transpose", _by_method("transpose"), ([2, 3],)),
        Derivative("transpose of three", _by_method("transpose", [1, 2, 0]), ([2, 3, 2],)),
        Derivative("reshape", _by_method("reshape", [3, 2]), ([2, 3],)),
        Derivative("squeeze", _by_method("squeeze", 0), ([1, 3],)),
        Derivative("expand_dims", _by_method("expand_dims", 1), ([3],)),
        Derivative("broadcast", _by_method("broadcast", [4, 2, 3]), ([2, 1],)),
        Derivative("resize", _by_method("resize", [1, 4]), ([2, 3],)),
        Derivative("slice", _by_method("slice", [1, 0], [1, 2]), ([3, 3],)),
        Derivative("concat", lambda f, x, y: f.concat([x, y, x]), ([2, 1], [2, 3])),
        Derivative("split", lambda f, x: f.split(x, 3, 1), ([2, 6],)),
        Derivative("one part of a split", lambda f, x: f.square(f.split(x, 2)[1]), ([4],)),
        Derivative("one variable twice", lambda f, x: f.add(f.mul(x, x), f.sin(x)), ([4],)),
        Derivative("a result that is read too", _read_too, ([4],)),
    ]


def _read_too(f: Builder, x: Variable) -> tuple[Variable, Variable]:
    y = f.sin(x)
    y.output = True
    return y, f.square(y)


def _reductions() -> list[Derivative]:
    found = []
    for method in ("sum", "product", "max", "min", "mean", "variance", "logsumexp"):
        for axis, keep in ((None, None), (0, None), (1, True)):
            build = _by_method(method, axis, keep)
            found.append(Derivative(f"{method} along {axis}", build, ([2, 3],), 0.3, apart=True))
    for method in ("softmax", "log_softmax"):
        found += [Derivative(f"{method} along {axis}", _by_method(method, axis), ([2, 3],)) for axis in (None, 0, 1)]
    return [
        *found,
        Derivative("the largest with its index", lambda f, x: f.argmax(x, 1, True)[1], ([2, 3],), apart=True),
        Derivative("the smallest with its index", lambda f, x: f.argmin(x, None, True)[1], ([2, 3],), apart=True),
        Derivative("norm", _by_method("norm"), ([4],)),
        Derivative("normalize", _by_method("normalize"), ([4],)),
        Derivative("Normalize", _by_type("Normalize"), ([4],), 0.5),
        Derivative("dot_product", _by_method("dot_product"), ([4], [4])),
        Derivative("cos_sim", _by_method("cos_sim"), ([4], [4])),
    ]


def _of(indices: Any) -> Callable[[Builder], Variable]:
    return lambda f: f.const(np.array(indices, np.int32), DT_INT32)


def _gathers() -> list[Derivative]:
    rows, pairs = _of([[2], [0], [2]]), _of([[1, 0], [0, 2]])
    some, batches = _of([[2], [-1], [0]]), _of([[[1], [3]], [[-1], [0]]])
    found = [
        Derivative("gather", lambda f, x: f.gather(x, rows(f)), ([4, 2],)),
        Derivative("gather by a list", lambda f, x: f.gather(x, _of([2, 0, 2])(f)), ([4, 2],)),
        Derivative("gather by a number", lambda f, x: f.gather(x, f.const(1)), ([4, 2],)),
        Derivative("gather of elements", lambda f, x: f.gather(x, pairs(f)), ([2, 3],)),
        Derivative("gather with another row", lambda f, x, y: f.gather(x, some(f), y), ([4, 2], [2])),
        Derivative("scatter", lambda f, x: f.scatter(rows(f), x, [4, 2]), ([3, 2],)),
        Derivative("scatter of some", lambda f, x: f.scatter(some(f), x, [4, 2]), ([3, 2],)),
        Derivative("scatter of one", lambda f, x: f.scatter(some(f), x, [4, 2], pooled=True), ([2],)),
        Derivative("onehot", lambda f, x: f.onehot(_of([1, 0])(f), 3, x), ([2],)),
    ]
    for method in ("gather_sum", "gather_avg", "gather_max"):
        found += [
            Derivative(method, _pooled(method, some, None), ([4, 2],), apart=True),
            Derivative(f"{method} in batches", _pooled(method, batches, 1), ([4, 2],), apart=True),
        ]
    return found


def _pooled(method: str, indices: Callable[[Builder], Variable], batch: int | None) -> Build:
    return lambda f, x: getattr(f, method)(x, indices(f), batch)


DERIVATIVES = (*_unary(), *_binary(), *_arrays(), *_reductions(), *_gathers())
