"""Flow operations with their definitions in NumPy: test cases for everything that reads, builds or compiles flows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flow.extracted_meanings import extracted
from flow.meaning import Meaning, case, drawn, whole
from onert.frontend.flow.file import FlowFile, Function, Operation, Variable, encode
from onert.ir import Array


def variable(name: str, array: Array, data: bool = False) -> Variable:
    """A variable of the array's type and shape, with `data` a constant that holds it."""
    return Variable(name, array.dtype.name, array.shape, data=array.tobytes() if data else b"")


def content(meanings: Sequence[Meaning]) -> bytes:
    """A flow file with one operation per case in one function `f`: inputs `0/x0`, `0/x1`; results `0/y0`, `1/y0`."""
    variables: list[Variable] = []
    operations: list[Operation] = []
    for at, meaning in enumerate(meanings):
        inputs = [variable(f"{at}/x{i}", x, data=i in meaning.constants) for i, x in enumerate(meaning.inputs)]
        outputs = [variable(f"{at}/y{i}", y) for i, y in enumerate(meaning.expected)]
        names = tuple(tuple(v.name for v in side) for side in (inputs, outputs))
        operations.append(Operation(f"{at}", meaning.type, *names, tuple(meaning.attributes.items())))
        variables += [*inputs, *outputs]
    function = Function("f", tuple(operation.name for operation in operations))
    return b"".join(encode(FlowFile(6, tuple(variables), tuple(operations), (function,))))


def given(meanings: Sequence[Meaning]) -> dict[str, Array]:
    """The inputs of the function that `content` builds."""
    return {
        f"{at}/x{i}": x
        for at, meaning in enumerate(meanings)
        for i, x in enumerate(meaning.inputs)
        if i not in meaning.constants
    }


_erf = np.vectorize(math.erf, otypes=[np.float64])
_POSITIVE, _UNIT, _BEYOND = (0.1, 9), (-0.95, 0.95), (1.1, 9)
UNARY: Mapping[str, tuple[Callable[[Array], Any], tuple[float, float]]] = {
    "Log": (np.log, _POSITIVE),
    "Log2": (np.log2, _POSITIVE),
    "Exp": (np.exp, (-4, 4)),
    "Exp2": (np.exp2, (-4, 4)),
    "Erf": (_erf, (-4, 4)),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (-9, 9)),
    "Relu": (lambda x: np.maximum(x, 0), (-4, 4)),
    "Gelu": (lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), (-4, 4)),
    "Softsign": (lambda x: x / (1 + abs(x)), (-4, 4)),
    "Softplus": (lambda x: np.logaddexp(0, x), (-40, 40)),
    "LogSigmoid": (lambda x: -np.logaddexp(0, -x), (-40, 40)),
    "Sin": (np.sin, (-4, 4)),
    "Cos": (np.cos, (-4, 4)),
    "Tan": (np.tan, (-1.4, 1.4)),
    "Cot": (lambda x: 1 / np.tan(x), (0.2, 1.4)),
    "Sec": (lambda x: 1 / np.cos(x), (-1.4, 1.4)),
    "Csc": (lambda x: 1 / np.sin(x), (0.2, 3)),
    "Asin": (np.arcsin, _UNIT),
    "Acos": (np.arccos, _UNIT),
    "Atan": (np.arctan, (-4, 4)),
    "Acot": (lambda x: np.arctan(1 / x), _POSITIVE),
    "Asec": (lambda x: np.arccos(1 / x), _BEYOND),
    "Acsc": (lambda x: np.arcsin(1 / x), _BEYOND),
    "Sinh": (np.sinh, (-4, 4)),
    "Cosh": (np.cosh, (-4, 4)),
    "Tanh": (np.tanh, (-4, 4)),
    "Coth": (lambda x: 1 / np.tanh(x), _POSITIVE),
    "Sech": (lambda x: 1 / np.cosh(x), (-4, 4)),
    "Csch": (lambda x: 1 / np.sinh(x), _POSITIVE),
    "Asinh": (np.arcsinh, (-4, 4)),
    "Acosh": (np.arccosh, _BEYOND),
    "Atanh": (np.arctanh, _UNIT),
    "Acoth": (lambda x: np.arctanh(1 / x), _BEYOND),
    "Asech": (lambda x: np.arccosh(1 / x), (0.1, 0.95)),
    "Acsch": (lambda x: np.arcsinh(1 / x), _POSITIVE),
    "Square": (np.square, (-4, 4)),
    "Sqrt": (np.sqrt, _POSITIVE),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), _POSITIVE),
    "Neg": (np.negative, (-4, 4)),
    "Abs": (np.abs, (-4, 4)),
    "Sign": (np.sign, (-4, 4)),
    "Reciprocal": (lambda x: 1 / x, _POSITIVE),
    "Floor": (np.floor, (-4, 4)),
    "Ceil": (np.ceil, (-4, 4)),
    "Round": (np.round, (-4, 4)),
    "Trunc": (np.trunc, (-4, 4)),
    "Identity": (lambda x: x, (-4, 4)),
    "Not": (lambda x: x == 0, (-4, 4)),
}
"""Unary operations: the definition in NumPy and the range of the inputs."""
BINARY: Mapping[str, Callable[[Array, Array], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": lambda x, y: x / y if x.dtype.kind == "f" else np.trunc(x / y),
    "Mod": np.fmod,
    "Minimum": np.minimum,
    "Maximum": np.maximum,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "And": lambda x, y: (x != 0) & (y != 0),
    "Or": lambda x, y: (x != 0) | (y != 0),
    "Xor": lambda x, y: (x != 0) ^ (y != 0),
    "AndNot": lambda x, y: (x == 0) & (y != 0),
}
INTEGER_UNARY = ("Square", "Neg", "Abs", "Sign", "Relu", "Floor", "Ceil", "Round", "Trunc", "Identity", "Not")


def _elementwise() -> list[Meaning]:
    found = []
    for name, (function, (low, high)) in UNARY.items():
        for dtype in ("float32", "float64"):
            x = drawn(3, 5, low=low, high=high, dtype=dtype)
            if name == "Not":
                x[0] = 0
            expected = np.asarray(function(x.astype("float64"))).astype(dtype)
            found.append(case(name, [x], expected, dtype))
    for name in INTEGER_UNARY:
        x = whole(-3, 0, 7, dtype="int16")
        found.append(case(name, [x], np.asarray(UNARY[name][0](x)).astype("int16"), "int16"))
    for name, pair in BINARY.items():
        for dtype in ("float32", "float64", "int8", "int16", "int32", "int64"):
            x, y = drawn(4, 3, dtype=dtype), drawn(3, low=1, dtype=dtype)
            x[0] = 2
            found.append(case(name, [x, y], np.asarray(pair(x, y)).astype(dtype), dtype))
    x, condition = drawn(2, 3), drawn(2, 3).round()
    return [
        *found,
        _pow(),
        case("Cond", [condition, x, -x], np.where(condition != 0, x, -x)),
        case("Cond", [condition > 0, x, np.float32(7)], np.where(condition > 0, x, np.float32(7)), "of truth"),
        case("Select", [condition, x], np.where(condition != 0, x, 0).astype("f4")),
        _cast("CastFloat", "float32", "int32"),
        _cast("CastDouble", "float64", "float32"),
        _cast("CastInt", "int32", "float64"),
        _cast("CastByte", "int8", "int64"),
        _cast("CastShort", "int16", "int8"),
        _cast("CastLong", "int64", "int64"),
    ]


def _pow() -> Meaning:
    x = drawn(5, low=0.1)
    return case("Pow", [x, np.float32(1.5)], np.power(x, np.float32(1.5)))


def _cast(name: str, source: str, target: str) -> Meaning:
    x = drawn(6, low=-90, high=90, dtype=source)
    return case(name, [x], x.astype(target), f"to {target}")


def _reductions() -> list[Meaning]:
    x, truth = drawn(3, 4, 2), (drawn(3, 4, 2) > 0).astype("f4")
    functions = {"Sum": np.sum, "Product": np.prod, "Max": np.max, "Min": np.min}
    found = []
    for axis in (None, 0, 1, -1):
        for keep in (False, True):
            if axis is None and keep:
                continue
            text = {} if axis is None else {"axis": str(axis), **({"keepdims": "1"} if keep else {})}
            named = f"along {axis}{', kept' if keep else ''}"
            for name, function in functions.items():
                found.append(case(name, [x], function(x, axis=axis, keepdims=keep), named, **text))
            for name, logical in (("All", np.all), ("Any", np.any)):
                found.append(case(name, [truth], logical(truth, axis=axis, keepdims=keep).astype("f4"), named, **text))
            counted = np.sum(truth != 0, axis=axis, keepdims=keep).astype("f4")
            found.append(case("Count", [truth], counted, named, **text))
    e = np.exp(x - x.max())
    along = np.exp(x - x.max(1, keepdims=True))
    index = x.argmax(1)
    return [
        *found,
        case("Count", [truth], np.int32(truth.sum()), "as int32"),
        case("Sum", [whole(1, 2, 3, dtype="int8")], np.int8(6), "of int8"),
        case("SoftMax", [x], e / e.sum(), "of all"),
        case("SoftMax", [x[:1, 0]], np.exp(x[:1, 0]) / np.exp(x[:1, 0]).sum(), "of a row"),
        case("SoftMax", [x], along / along.sum(1, keepdims=True), "along 1", axis="1"),
        case("SoftMax", [x], _along(x, 0), "along 0", axis="0"),
        case("LogSoftMax", [x], np.log(_along(x, 2)), "along the last", axis="-1"),
        case("LogSumExp", [x], np.log(np.exp(x).sum()), "of all"),
        case("LogSumExp", [x], np.log(np.exp(x).sum(1)), "along 1", axis="1"),
        case("LogSumExp", [x], np.log(np.exp(x).sum(1, keepdims=True)), "kept", axis="1", keepdims="1"),
        case("Normalize", [abs(x)], abs(x) / abs(x).sum()),
        case("ArgMax", [x], np.int32(x.argmax()), "of all"),
        case("ArgMin", [x], x.argmin(0).astype("i4"), "along 0", axis="0"),
        case("ArgMax", [x], (index.astype("i4"), x.max(1)), "with the element", axis="1"),
        case("ArgMin", [x], (np.int32(x.argmin()), x.min()), "of all, with the element"),
    ]


def _along(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _products() -> list[Meaning]:
    x, y, bias = drawn(3, 5), drawn(5, 4), drawn(4)
    found = [case("MatMul", [x, y], x @ y)]
    for dtype in ("float64", "int8", "int16", "int32", "int64"):
        a, b = drawn(3, 5, dtype=dtype), drawn(5, 4, dtype=dtype)
        found.append(case("MatMul", [a, b], a @ b, dtype))
    batch_a, batch_b = drawn(2, 3, 5), drawn(2, 5, 4)
    found.append(case("MatMul", [batch_a, batch_b], batch_a @ batch_b, "in batches"))
    for text in ("a", "b", "c", "ab", "bc", "abc"):
        a, b = (x.T if "a" in text else x).copy(), (y.T if "b" in text else y).copy()
        expected = (x @ y).T.copy() if "c" in text else x @ y
        found.append(case("MatMul", [a, b], expected, text, **{f"transpose_{c}": "1" for c in text}))
    relu = np.maximum(x @ y + bias, 0)
    return [
        *found,
        case("MatMulAdd", [x, y, bias], x @ y + bias, "given"),
        case("MatMulAdd", [x, y, bias], x @ y + bias, "constant", constants=(1, 2)),
        case("MatMulAdd", [x, y, drawn(3, 1) * 0 + 2], x @ y + 2, "a bias for each row", constants=(1, 2)),
        case("MatMulRelu", [x, y], np.maximum(x @ y, 0), "given"),
        case("MatMulRelu", [x, y], np.maximum(x @ y, 0), "constant", constants=(1,)),
        case("MatMulAddRelu", [x, y, bias], relu, "given"),
        case("MatMulAddRelu", [x, y, bias], relu, "constant", constants=(1, 2)),
        case("MatMulAddRelu", [x, y.T.copy(), bias[None]], relu, "transposed", constants=(1, 2), transpose_b="1"),
        case("Linear", [x, y.T.copy(), bias], x @ y + bias),
    ]


def _arrays() -> list[Meaning]:
    x, cut = drawn(2, 3, 4), drawn(3, 5)
    grown = np.zeros((4, 5), "f4")
    grown[:3] = cut
    axis = np.int32(1)
    return [
        case("Transpose", [x], x.T.copy(), "reversed"),
        case("Transpose", [x], x.transpose(1, 0, 2).copy(), "permuted", perm="[1, 0, 2]"),
        case("Reshape", [x, whole(4, 6)], x.reshape(4, 6), constants=(1,)),
        case("Reshape", [x], x.reshape(6, 4), "as declared"),
        case("Squeeze", [x[:1]], x[0]),
        case("ExpandDims", [x], x[:, None]),
        case("Concat", [x, x, axis], np.concatenate([x, x], 1), constants=(2,), N="2"),
        case("Concat", [x, axis], x, "of one", constants=(1,), N="1"),
        case("Split", [x, np.int32(3), axis], tuple(np.split(x, 3, 1)), constants=(1, 2)),
        case("Split", [x, np.int32(2)], tuple(np.split(x, 2)), "along the first", constants=(1,)),
        case("Slice", [x, whole(0, 1, 2), whole(2, 1, 2)], x[:, 1:2, 2:4], constants=(1, 2)),
        case("Resize", [cut], cut[:2, :4], "smaller", shape="[2,4]"),
        case("Resize", [cut], grown, "larger"),
        case("Resize", [cut], cut, "as it is", shape="[3, 5]"),
        case("Broadcast", [cut[:1]], np.broadcast_to(cut[:1], (3, 5)).copy()),
        case(
            "Broadcast", [cut[0], whole(2, 5)], np.broadcast_to(cut[0], (2, 5)).copy(), "to an operand", constants=(1,)
        ),
        case("Shape", [x], whole(2, 3, 4)),
        case("Size", [x], np.int32(24)),
        case("Rank", [x], np.int32(3)),
        case("Rank", [x], np.int64(3), "as int64"),
    ]


def _gathers() -> list[Meaning]:
    table, cube = drawn(6, 3), drawn(2, 3, 4)
    rows = np.array([[1], [5], [0], [1]], "i4")
    pairs = np.array([[1, 2], [0, 0]], "i4")
    some = np.array([[2], [-1], [4]], "i4")
    bags = np.array([[[1], [2], [-1]], [[0], [0], [5]], [[-1], [-1], [-1]]], "i4")
    oov = drawn(3)
    pooled = table[bags[..., 0]] * (bags != -1)
    largest = np.where(bags != -1, table[bags[..., 0]], -np.inf).max(1)
    largest[2] = 0
    scattered = np.zeros((6, 3), "f4")
    values = drawn(4, 3)
    np.add.at(scattered, rows[:, 0], values)
    bagged = np.zeros((6, 3), "f4")
    for bag, value in zip(bags, values, strict=False):
        np.add.at(bagged, bag[bag != -1], value)
    marks = np.eye(5, dtype="f4")[[3, 0]]
    return [
        case("Gather", [table, np.int32(4)], table[4], "one row"),
        case("Gather", [table, rows], table[rows[:, 0]], "rows"),
        case("Gather", [table, whole(3, 1)], table[[3, 1]], "rows of a list"),
        case("Gather", [cube, whole(1, 2)], cube[1, 2], "one index of two dimensions"),
        case("Gather", [cube, pairs], cube[pairs[:, 0], pairs[:, 1]], "of two dimensions"),
        case("Gather", [table, some, oov], np.stack([table[2], oov, table[4]]), "with a row for negative ones"),
        case("Gather", [table, np.int32(-1), oov], oov, "one, negative"),
        case("GatherSum", [table, bags[0]], table[1] + table[2]),
        case("GatherSum", [table, bags], pooled.sum(1), "in batches", batch="1"),
        case("GatherAvg", [table, bags[:2]], pooled[:2].sum(1) / np.array([[2], [3]], "f4"), "in batches", batch="1"),
        case("GatherMax", [table, bags], largest, "in batches", batch="1"),
        case("Scatter", [rows, values], scattered, "", tolerance=1e-6),
        case("Scatter", [bags, values[:3]], bagged, "pooled", batch="1", pooled="1"),
        case("OneHot", [whole(3, 0)], marks, depth="5"),
        case("OneHot", [whole(3, 0, dtype="int8")], marks, "of int8", depth="5"),
        case("OneHot", [whole(3, 0), oov], marks[..., None] * oov, "with a value", depth="5"),
    ]


def _recipes() -> list[Meaning]:
    x, y, z = drawn(2, 4), drawn(2, 4), np.float32(0.25)
    e = np.exp(x - z)
    sigmoid = 1 / (1 + np.exp(-(x + y)))
    return [
        case("Calculate", [x, z], (e, e.sum()), "two results", expr="@0=Exp(Sub(%0,%1));@1=Sum(@0)"),
        case("Calculate", [x, y], sigmoid * y, "a temporary", expr="$2=Sigmoid(Add(%0,%1));@0=Mul($2,%1)"),
        case("Calculate", [x, z], (1 - x) * z, "numbers", expr="@0 = Mul( Sub(_1, %0), #1' )"),
        case("Calculate", [x, y, z], y * x + z, "one instruction", expr="@0=MulAdd213(%0,%1,%2)"),
        case("Calculate", [x, y], np.where(x < y, x, y), "a choice", expr="@0=Cond(CmpLt(!0,!1),!0,!1)"),
        case("Calculate", [x], x, "nothing", expr="@0=%0"),
        case("Calculate", [x], (np.float32((x != 0).sum()), x.max()), "reductions", expr="@0=Count(%0);@1=Max(%0)"),
    ]


FAMILIES: Mapping[str, Sequence[Meaning]] = {
    "elementwise": _elementwise(),
    "reductions": _reductions(),
    "products": _products(),
    "arrays": _arrays(),
    "gathers": _gathers(),
    "recipes": _recipes(),
    "extracted": extracted(),
}
MEANINGS = tuple(meaning for family in FAMILIES.values() for meaning in family)
