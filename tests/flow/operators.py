"""The builder's operations with their definitions in NumPy, for the sizes and element types of Myelin's own tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from flow.meanings import UNARY
from onert.flow import Builder, Variable
from onert.ir import Array

FLOATS = ("float32", "float64")
NUMBERS = (*FLOATS, "int8", "int16", "int32", "int64")
SIZES = (1, 2, 3, 4, 5, 6, 7, 9, 14, 15, 16, 31, 32, 33, 64)
Build = Callable[..., Any]


@frozen(eq=False)
class Operator:
    """A builder method: how to call it on variables, its definition on arrays, and its test inputs (the shape of each
    as a function of a size, and the range of the elements).
    """

    name: str
    build: Build
    meaning: Callable[..., Any]
    shapes: tuple[Callable[[int], Sequence[int]], ...]
    dtypes: Sequence[str] = NUMBERS
    low: float = -10
    high: float = 10
    rtol: float = 1e-5
    atol: float = 1e-8
    logical: bool = False
    indices: int | None = None
    """The input that holds indices, each less than the size."""

    def __str__(self) -> str:
        return self.name


def _vector(n: int) -> Sequence[int]:
    return [n]


def _matrix(n: int) -> Sequence[int]:
    return [3, n]


_LOOSER = {
    "rsqrt": (1e-3, 1e-4),
    "rcp": (1e-3, 1e-4),
    "sinh": (1e-3, 1e-6),
    "asinh": (1e-3, 1e-6),
    "acosh": (1e-5, 1e-6),
    "erf": (1e-6, 1e-4),
    "gelu": (1e-5, 1e-6),
}
"""Relative and absolute tolerances of Myelin's tests where they differ from 1e-5 and 1e-8."""


def _unary() -> list[Operator]:
    found = []
    for method, optype in (
        *(
            (name, name.capitalize())
            for name in ("log", "exp", "erf", "sigmoid", "relu", "gelu", "softsign", "softplus")
        ),
        *((name, name.capitalize()) for name in ("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan")),
        *((name, name.capitalize()) for name in ("acot", "asec", "acsc", "sinh", "cosh", "tanh", "coth", "sech")),
        *((name, name.capitalize()) for name in ("csch", "asinh", "acosh", "atanh", "acoth", "asech", "acsch")),
        *((name, name.capitalize()) for name in ("sqrt", "rsqrt")),
        ("logsigmoid", "LogSigmoid"),
        ("rcp", "Reciprocal"),
    ):
        function, (low, high) = UNARY[optype]
        rtol, atol = _LOOSER.get(method, (1e-5, 1e-8))
        found.append(_method(method, function, FLOATS, low, high, rtol=rtol, atol=atol))
    for name in ("square", "neg", "abs", "sign", "floor", "ceil", "round", "trunc", "identity"):
        found.append(_method(name, UNARY[name.capitalize()][0], NUMBERS, -10, 10))
    return [*found, _method("logical_not", lambda x: x == 0, NUMBERS, -1, 2, logical=True)]


def _method(
    name: str, meaning: Callable[..., Any], dtypes: Sequence[str], low: float, high: float, **more: Any
) -> Operator:
    def build(f: Builder, x: Variable) -> Any:
        return getattr(f, name)(x)

    return Operator(name, build, meaning, (_vector,), dtypes, low, high, **more)


def _binary() -> list[Operator]:
    found = []
    functions: dict[str, tuple[Callable[[Array, Array], Any], bool]] = {
        "add": (np.add, False),
        "sub": (np.subtract, False),
        "mul": (np.multiply, False),
        "minimum": (np.minimum, False),
        "maximum": (np.maximum, False),
        "equal": (np.equal, True),
        "not_equal": (np.not_equal, True),
        "less": (np.less, True),
        "less_equal": (np.less_equal, True),
        "greater": (np.greater, True),
        "greater_equal": (np.greater_equal, True),
        "logical_and": (lambda x, y: (x != 0) & (y != 0), True),
        "logical_or": (lambda x, y: (x != 0) | (y != 0), True),
        "logical_xor": (lambda x, y: (x != 0) ^ (y != 0), True),
        "logical_and_not": (lambda x, y: (x == 0) & (y != 0), True),
    }
    for name, (function, logical) in functions.items():
        for kind, shapes in (("", (_vector, _vector)), (" with a row", (_matrix, _vector))):
            found.append(
                _pair(
                    name, kind, function, shapes, low=-2 if logical else -10, high=2 if logical else 10, logical=logical
                )
            )
    outer = (lambda n: [n, 1], lambda n: [1, n])
    return [
        *found,
        _pair("add", " of all pairs", np.add, outer),
        _pair("div", "", lambda x, y: x / y if x.dtype.kind == "f" else np.trunc(x / y), (_vector, _vector), low=1),
        _pair("mod", "", np.fmod, (_vector, _vector), low=1, atol=1e-5),
        _pair("pow", "", np.power, (_vector, _vector), low=0.5, high=3, dtypes=FLOATS),
    ]


def _pair(name: str, kind: str, meaning: Callable[..., Any], shapes: Any, **more: Any) -> Operator:
    def build(f: Builder, x: Variable, y: Variable) -> Any:
        return getattr(f, name)(x, y)

    return Operator(name + kind, build, meaning, shapes, **more)


def _choices() -> list[Operator]:
    def bounded(f: Builder, x: Variable) -> Any:
        return f.clip(x, -3, 4)

    return [
        Operator("cond", Builder.cond, lambda c, x, y: np.where(c != 0, x, y), (_vector,) * 3, low=-2, high=2),
        Operator("select", Builder.select, lambda c, x: np.where(c != 0, x, 0), (_vector,) * 2, low=-2, high=2),
        Operator("clip", bounded, lambda x: np.clip(x, -3, 4), (_vector,)),
        *(
            Operator(f"cast to {to}", _casting(to), lambda x, to=to: x.astype(to), (_vector,))
            for to in ("float32", "float64", "int8", "int32")
        ),
    ]


def _casting(to: str) -> Build:
    return lambda f, x: f.cast(x, to)


def _reductions() -> list[Operator]:
    found = []
    functions: dict[str, Callable[..., Any]] = {"sum": np.sum, "min": np.min, "max": np.max, "mean": np.mean}
    for name, function in functions.items():
        dtypes = FLOATS if name == "mean" else NUMBERS
        for axis, keep in ((None, None), (0, None), (1, None), (-1, True), (0, True)):
            kind = f"{name} along {axis}{' kept' if keep else ''}"
            found.append(
                Operator(kind, _along(name, axis, keep), _reducing(function, axis, keep), (_matrix,), dtypes, low=0.1)
            )
    for name, function in (("all", np.all), ("any", np.any)):
        found.append(
            Operator(
                name, _along(name, 1, None), _reducing(function, 1, None), (_matrix,), low=-2, high=2, logical=True
            )
        )
    variance = {"rtol": 1e-4}
    return [
        *found,
        Operator("product", _along("product", 0, None), _reducing(np.prod, 0, None), (_matrix,), low=1, high=3),
        Operator("count", lambda f, x: f.count(x), lambda x: np.float32((x != 0).sum()), (_vector,), low=-2, high=2),
        Operator(
            "count along",
            lambda f, x: f.count(x, 1, "int32"),
            lambda x: (x != 0).sum(1).astype("i4"),
            (_matrix,),
            low=-2,
            high=2,
        ),
        Operator("variance", lambda f, x: f.variance(x), np.var, (_vector,), FLOATS, **variance),
        Operator(
            "variance along",
            lambda f, x: f.variance(x, 1, True),
            lambda x: x.var(1, keepdims=True),
            (_matrix,),
            FLOATS,
            **variance,
        ),
        Operator("norm", lambda f, x: f.norm(x), lambda x: np.sqrt((x * x).sum()), (_vector,), FLOATS),
        Operator(
            "normalize", lambda f, x: f.normalize(x), lambda x: x / np.sqrt((x * x).sum()), (_vector,), FLOATS, low=1
        ),
        Operator("softmax", lambda f, x: f.softmax(x), lambda x: _softmax(x, None), (_vector,), FLOATS),
        Operator("softmax along 0", lambda f, x: f.softmax(x, axis=0), lambda x: _softmax(x, 0), (_matrix,), FLOATS),
        Operator("softmax along 1", lambda f, x: f.softmax(x, axis=1), lambda x: _softmax(x, 1), (_matrix,), FLOATS),
        Operator(
            "log_softmax",
            lambda f, x: f.log_softmax(x, 1),
            lambda x: np.log(_softmax(x, 1)),
            (_matrix,),
            FLOATS,
            atol=1e-5,
        ),
        Operator("logsumexp", lambda f, x: f.logsumexp(x), lambda x: np.log(np.exp(x).sum()), (_vector,), FLOATS),
        Operator(
            "logsumexp along", lambda f, x: f.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1)), (_matrix,), FLOATS
        ),
        Operator("argmax", lambda f, x: f.argmax(x), lambda x: np.int32(x.argmax()), (_vector,)),
        Operator("argmin along", lambda f, x: f.argmin(x, 1), lambda x: x.argmin(1).astype("i4"), (_matrix,)),
        Operator(
            "argmax with value",
            lambda f, x: f.argmax(x, 0, True),
            lambda x: (x.argmax(0).astype("i4"), x.max(0)),
            (_matrix,),
        ),
        Operator(
            "dot_product",
            Builder.dot_product,
            lambda x, y: (x * y).sum(),
            (_vector, _vector),
            FLOATS,
            low=0.1,
        ),
        Operator("cos_sim", Builder.cos_sim, _cosine, (_vector, _vector), FLOATS, low=1),
    ]


def _along(name: str, axis: int | None, keep: bool | None) -> Build:
    return lambda f, x: getattr(f, name)(x, axis, keep)


def _reducing(function: Callable[..., Any], axis: int | None, keep: bool | None) -> Callable[[Array], Any]:
    return lambda x: np.asarray(function(x, axis=axis, keepdims=bool(keep)))


def _softmax(x: Array, axis: int | None) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _cosine(x: Array, y: Array) -> Any:
    return (x * y).sum() / (np.sqrt((x * x).sum()) * np.sqrt((y * y).sum()))


def _arrays() -> list[Operator]:
    def even(n: int) -> Sequence[int]:
        return [2 * n, 4]

    return [
        Operator("matmul", Builder.matmul, np.matmul, (lambda n: [1, n], lambda n: [n, 5]), low=0.1),
        Operator("matmul of matrices", Builder.matmul, np.matmul, (lambda n: [n, 3], lambda n: [3, n]), low=0.1),
        Operator(
            "matmul in batches",
            Builder.matmul,
            np.matmul,
            (lambda n: [8, n, 2], lambda n: [8, 2, n]),
            low=0.1,
        ),
        Operator("t", lambda f, x: f.t(x), np.transpose, (_matrix,)),
        Operator(
            "transpose", lambda f, x: f.transpose(x, [2, 0, 1]), lambda x: x.transpose(2, 0, 1), (lambda n: [n, 2, 3],)
        ),
        Operator("transpose by nothing", lambda f, x: f.transpose(x, [0, 1]), lambda x: x, (_matrix,)),
        Operator("reshape", lambda f, x: f.reshape(x, [-1, 2]), lambda x: x.reshape(-1, 2), (even,)),
        Operator("squeeze", lambda f, x: f.squeeze(x), np.squeeze, (lambda n: [1, n + 1, 1],)),
        Operator("squeeze of one", lambda f, x: f.squeeze(x, -1), lambda x: x[..., 0], (lambda n: [n, 2, 1],)),
        Operator("expand_dims", lambda f, x: f.expand_dims(x, -1), lambda x: x[..., None], (_matrix,)),
        Operator(
            "broadcast",
            lambda f, x: f.broadcast(x, [4, *x.shape]),
            lambda x: np.broadcast_to(x, (4, *x.shape)),
            (_vector,),
        ),
        Operator(
            "resize",
            lambda f, x: f.resize(x, [2, x.shape[1] + 3]),
            lambda x: np.pad(x[:2], ((0, 0), (0, 3))),
            (_matrix,),
        ),
        Operator("slice", lambda f, x: f.slice(x, [1, 0], [-1, 1]), lambda x: x[1:, :1], (_matrix,)),
        Operator(
            "concat", lambda f, x, y: f.concat([x, y]), lambda x, y: np.concatenate([x, y], 1), (_matrix, _matrix)
        ),
        Operator(
            "concat along 0",
            lambda f, x, y: f.concat([x, y], axis=0),
            lambda x, y: np.concatenate([x, y]),
            (_matrix, _matrix),
        ),
        Operator("split", lambda f, x: f.split(x, 2), lambda x: tuple(np.split(x, 2)), (even,)),
        Operator("split along 1", lambda f, x: f.split(x, 4, 1), lambda x: tuple(np.split(x, 4, 1)), (even,)),
        Operator("shape", lambda f, x: f.shape(x), lambda x: np.array(x.shape, "i4"), (_matrix,)),
        Operator("size", lambda f, x: f.size(x), lambda x: np.int32(x.size), (_matrix,)),
        Operator("rank", lambda f, x: f.rank(x), lambda x: np.int32(x.ndim), (_matrix,)),
    ]


def _gathers() -> list[Operator]:
    table = (lambda n: [n, 3], lambda n: [4, 1])

    def scattered(indices: Array, value: Array) -> Array:
        found = np.zeros((64, 3), value.dtype)
        np.add.at(found, indices[:, 0], value)
        return found

    def pooled(function: Callable[..., Any]) -> Callable[[Array, Array], Any]:
        return lambda p, i: function(p[i[:, 0]], axis=0).astype(p.dtype)

    return [
        Operator("gather", Builder.gather, lambda p, i: p[i[:, 0]], table, indices=1),
        Operator("gather one", Builder.gather, lambda p, i: p[i], (lambda n: [n, 3], lambda n: []), indices=1),
        Operator("gather_sum", Builder.gather_sum, pooled(np.sum), table, indices=1),
        Operator("gather_max", Builder.gather_max, pooled(np.max), table, indices=1),
        Operator("gather_avg", Builder.gather_avg, pooled(np.mean), table, FLOATS, rtol=1e-3, indices=1),
        Operator(
            "scatter",
            lambda f, i, v: f.scatter(i, v, [64, 3]),
            scattered,
            (lambda n: [4, 1], lambda n: [4, 3]),
            indices=0,
        ),
        Operator(
            "onehot",
            lambda f, i: f.onehot(i, 64),
            lambda i: np.eye(64, dtype="f4")[i],
            (_vector,),
            ("int32",),
            indices=0,
        ),
        Operator(
            "onehot with a value",
            lambda f, i, v: f.onehot(i, 64, v),
            lambda i, v: np.eye(64, dtype=v.dtype)[i][..., None] * v,
            (_vector, _vector),
            indices=0,
        ),
        Operator(
            "gather with oov",
            lambda f, p, i, o: f.gather(p, f.sub(i, 1), o),
            lambda p, i, o: np.where(i < 1, o, p[i[:, 0] - 1]),
            (*table, lambda n: [3]),
            indices=1,
        ),
    ]


OPERATORS = (*_unary(), *_binary(), *_choices(), *_reductions(), *_arrays(), *_gathers())


def inputs(operator: Operator, size: int, dtype: str) -> list[Array]:
    """The input arrays of a case, reproducible for the same operator, size and element type."""
    seed = [*operator.name.encode(), size, NUMBERS.index(dtype)]
    rng = np.random.default_rng(seed)
    found = []
    for at, shape in enumerate(operator.shapes):
        dims = list(shape(size))
        if at == operator.indices:
            found.append(rng.integers(0, size, dims).astype("int32"))
        else:
            drawn = rng.uniform(operator.low, operator.high, dims)
            found.append((drawn.round() if operator.logical or dtype.startswith("int") else drawn).astype(dtype))
    return found


def is_alike(found: Array, expected: Array, operator: Operator) -> bool:
    """Whether a result matches; for a logical operator only whether the same elements are nonzero."""
    if operator.logical:
        return bool(np.array_equal(np.asarray(found) != 0, np.asarray(expected) != 0))
    if found.dtype.kind != "f":
        return bool(np.array_equal(found, np.asarray(expected).astype(found.dtype)))
    return bool(np.allclose(found, expected, operator.rtol, operator.atol, equal_nan=True))
