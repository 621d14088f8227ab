"""Linear models, and feature preprocessing."""

from __future__ import annotations

import numpy as np

from onert.frontend.onnx.building import convert, require_rank
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import Array, DType, ModelError
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.fill import Within
from onert.ir.ops.data_movement.gather import OneHot
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.lookup.table_of_values import LookUp
from onert.ir.ops.reduction.reduce import Reduction

from .scores import best, labelled, labels, transformed


def rows(node: Node) -> Expression:
    """The features as float32 `[rows, features]`; a vector is one row."""
    x = operand(node, 0).cast(DType.FLOAT32)
    if x.rank == 1:
        x = x.unsqueeze(0)
    if x.rank != 2:
        raise ModelError(f"has input {x.type}, expected 2 dimensions")
    return x


def _vector(x: Expression, values: tuple[float, ...]) -> Expression:
    return x.of(x.draft.constant(np.array(values, np.float32)))


def _products(node: Node, x: Expression) -> Expression:
    """The product of each row with each target's coefficients, plus the intercepts.

    If the number of features is unknown, there are as many targets as intercepts, or as the node says. Coefficients
    beyond those that several intercepts need are ignored, as in ONNX Runtime.
    """
    coefficients = np.array(node.numbers("coefficients") or (), np.float32)
    intercepts = node.numbers("intercepts")
    width = len(coefficients) // max(len(intercepts or ()) or node.integer("targets", 1), 1)
    width = width if x.shape[1] is None else x.shape[1]
    if intercepts and len(intercepts) > 1:
        coefficients = coefficients[: len(intercepts) * width]
    if not width or len(coefficients) % width or not len(coefficients):
        raise ModelError(f"there are {len(coefficients)} coefficients for {width} features")
    weights: Array = coefficients.reshape(-1, width)
    operands = [x.draft.constant(weights)]
    if intercepts:
        if len(intercepts) not in (1, len(weights)):
            raise ModelError(f"there are {len(intercepts)} intercepts for {len(weights)} targets")
        operands.append(x.draft.constant(np.resize(np.array(intercepts, np.float32), len(weights))))
    return x.of(x.draft.add(FullyConnected(), x.operand, *operands))


def _regressor(node: Node) -> int:
    return transformed(_products(node, rows(node)), node.text("post_transform", "NONE")).operand


def _classifier(node: Node) -> tuple[int, int]:
    """The best class of each row, and the scores."""
    scores, how = _products(node, rows(node)), node.text("post_transform", "NONE")
    classes = labels(node, "classlabels_ints", "classlabels_strings")
    count = scores.known_size(1, "the scores")
    if count == 1 and (classes is None or len(classes[0]) == 2):
        return _binary_label(scores, classes, how)
    classes = (np.arange(count, dtype=np.int64), DType.INT64) if classes is None else classes
    scores = transformed(scores, how)
    return best(scores, classes).operand, scores.operand


def _binary_label(x: Expression, classes: tuple[Array, DType] | None, how: str) -> tuple[int, int]:
    """The second class if its only score is above 0. If classes are named, the first one's score is computed from it.

    Then only LOGISTIC and PROBIT are applied; without names only PROBIT. Source: ONNX Runtime's linearclassifier.cc and
    ml_common.h.
    """
    places = (x > 0).cast(DType.INT64).reshape(None)
    found = transformed(x, how)
    scores = found if how == "PROBIT" or (how == "LOGISTIC" and classes is not None) else x
    if classes is None:
        return places.operand, scores.operand
    first = transformed(-x, how) if how == "LOGISTIC" else 1 - scores
    return labelled(places, classes).operand, first.concat([scores], 1).operand


def _scaled(node: Node) -> int:
    """`(x - offset) * scale`."""
    x = operand(node, 0).cast(DType.FLOAT32)
    offset, scale = node.numbers("offset"), node.numbers("scale")
    x = x - _vector(x, offset) if offset else x
    return (x * _vector(x, scale) if scale else x).operand


def _normalized(node: Node) -> int:
    """Each row divided by its maximum, L1 norm or L2 norm; unchanged if that is 0."""
    x = operand(node, 0).cast(DType.FLOAT32)
    last, norm = x.rank - 1, node.text("norm", "MAX")
    size = x.unary(UnaryKind.ABS)
    if norm == "MAX":
        by = x.reduce(Reduction.MAX, [last])
    elif norm == "L1":
        by = size.sum(last)
    elif norm == "L2":
        by = x.unary(UnaryKind.SQUARE).sum(last).unary(UnaryKind.SQRT)
    else:
        raise ModelError(f"norm is {norm!r}, expected MAX, L1 or L2")
    return (x / by.equals(0).select(by.like(1), by)).operand


def _binarized(node: Node) -> int:
    x = operand(node, 0)
    return (x > node.number("threshold")).cast(x.dtype).operand


def _imputed(node: Node) -> int:
    """Replace elements equal to a value by another value."""
    x = operand(node, 0)
    if x.dtype.is_float:
        numbers: tuple[float, ...] = node.numbers("imputed_value_floats") or ()
        old = node.number("replaced_value_float")
    else:
        numbers, old = node.integers("imputed_value_int64s") or (), node.integer("replaced_value_int64")
    if not numbers:
        raise ModelError("has no imputed value")
    values = np.array(numbers).astype(x.dtype.numpy)
    new = x.of(x.draft.constant(values if len(values) > 1 else values.reshape(()), x.dtype))
    gone = ~x.equals(x) if old != old else x.equals(old)
    return gone.select(new, x).operand


def _features(node: Node) -> int:
    """The elements at the given indices along the last axis."""
    d = node.draft
    x, places = operand(node, 0), operand(node, 1)
    if require_rank(d, x.operand) == 0:
        raise ModelError(f"has input {x.type}, expected at least 1 dimension")
    found = x.take(places.reshape(None), x.rank - 1)
    return (found.unsqueeze(0) if x.rank == 1 else found).operand


def _concat(node: Node) -> int:
    parts = [Expression(node.draft, i).cast(DType.FLOAT32) for i in node.operands()]
    parts = [p.unsqueeze(0) if p.rank == 1 else p for p in parts]
    return parts[0].concat(parts[1:], 1).operand


_KEYS = {"floats": DType.FLOAT32, "int64s": DType.INT64, "strings": DType.STRING}


def _listed(node: Node, side: str) -> tuple[Array, DType]:
    """The keys or values of a table, from whichever attribute is present."""
    whole = node.tensor(f"{side}_tensor")
    if whole is not None:
        return whole[0].reshape(-1), whole[1]
    for suffix, dtype in _KEYS.items():
        name = f"{side}_{suffix}"
        if node.has_attribute(name):
            if dtype is DType.STRING:
                return np.array([t.encode() for t in node.texts(name)], object), dtype
            return np.array(node.integers(name) if dtype is DType.INT64 else node.numbers(name), dtype.numpy), dtype
    return _class_list(node, side)


def _class_list(node: Node, side: str) -> tuple[Array, DType]:
    """Version 1 has one list of strings; the other side is their indices."""
    texts = node.texts("classes_strings")
    if not texts:
        raise ModelError(f"has no {side}")
    if (side == "keys") is (node.type(0).dtype is DType.STRING):
        return np.array([t.encode() for t in texts], object), DType.STRING
    return np.arange(len(texts), dtype=np.int64), DType.INT64


def _labels(node: Node) -> int:
    d = node.draft
    keys, values = _listed(node, "keys"), _listed(node, "values")
    given = node.tensor("default_tensor")
    if given is not None:
        rest = d.constant(given[0].reshape(-1)[:1].reshape(()), given[1])
    else:
        rest = d.constant(np.array(_default(node, values[1]), values[1].numpy), values[1])
    return d.add(LookUp(), node.input(0), d.constant(*keys), d.constant(*values), rest)


def _categories(node: Node) -> int:
    """Convert strings to the integers beside them in a list, or the reverse."""
    d, texts = node.draft, node.texts("cats_strings")
    integers = node.integers("cats_int64s") or ()
    if len(texts) != len(integers):
        raise ModelError(f"there are {len(texts)} strings and {len(integers)} integers")
    words = np.array([t.encode() for t in texts], object)
    numbers = d.constant(np.array(integers, np.int64))
    if node.type(0).dtype is DType.STRING:
        rest = d.constant(node.integer("default_int64", -1), DType.INT64)
        return d.add(LookUp(), node.input(0), d.constant(words, DType.STRING), numbers, rest)
    default: Array = np.array(node.text("default_string", "_Unused").encode(), object)
    return d.add(LookUp(), node.input(0), numbers, d.constant(words, DType.STRING), d.constant(default, DType.STRING))


def _map(node: Node) -> int:
    """The columns unchanged, in the order of their names: a tensor represents the list of maps."""
    x = operand(node, 0)
    named = labels(node, "classlabels_int64s", "classlabels_strings")
    if named is None or (x.rank and x.shape[-1] not in (None, len(named[0]))):
        raise ModelError(f"there are {0 if named is None else len(named[0])} names for the columns of {x.type}")
    return (x.unsqueeze(0) if x.rank == 1 else x).operand


def _row(node: Node) -> int:
    """The values of a map for each key of the vocabulary, which is already the tensor that represents the map."""
    if node.type(0).shape[1:] == (None,):
        raise ModelError("has no vocabulary")
    return node.input(0)


def _values(node: Node) -> int:
    """The values of a map, in the order of keys or indexed by key, cast to another element type."""
    kinds = {"TO_FLOAT": DType.FLOAT32, "TO_STRING": DType.STRING, "TO_INT64": DType.INT64}
    wanted, form = node.text("cast_to", "TO_FLOAT"), node.text("map_form", "DENSE")
    if wanted not in kinds or form not in ("DENSE", "SPARSE"):
        raise ModelError(f"cast_to is {wanted!r} and map_form {form!r}, expected {', '.join(kinds)}, DENSE or SPARSE")
    if form == "SPARSE" and wanted == "TO_STRING":
        raise ModelError("map_form is 'SPARSE' for strings, which is not supported")
    return convert(node.draft, node.input(0), kinds[wanted])


def _default(node: Node, dtype: DType) -> object:
    if dtype is DType.STRING:
        return node.text("default_string", "_Unused").encode()
    return node.number("default_float", -0.0) if dtype.is_float else node.integer("default_int64", -1)


def _one_hot(node: Node) -> int:
    """One-hot rows for categories; an unknown category gives zeros, or an error in the run."""
    d, x = node.draft, operand(node, 0)
    classes = labels(node, "cats_int64s", "cats_strings")
    if classes is None:
        raise ModelError("has no categories")
    keys, dtype = classes
    x = x if dtype is DType.STRING else x.cast(DType.INT64)
    numbers = d.constant(np.arange(len(keys), dtype=np.int64))
    where = d.add(LookUp(), x.operand, d.constant(keys, dtype), numbers, d.constant(-1, DType.INT64))
    if not node.flag("zeros", default=True):
        where = d.add(Within(), where, d.constant(len(keys), DType.INT64))
    one, zero = d.constant(1.0, DType.FLOAT32), d.constant(0.0, DType.FLOAT32)
    return d.add(OneHot(-1), where, d.constant(len(keys), DType.INT32), one, zero)


TABLE: dict[str, Importer] = {
    "ArrayFeatureExtractor": _features,
    "Binarizer": _binarized,
    "CategoryMapper": _categories,
    "CastMap": _values,
    "DictVectorizer": _row,
    "FeatureVectorizer": _concat,
    "Imputer": _imputed,
    "LabelEncoder": _labels,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": _normalized,
    "OneHotEncoder": _one_hot,
    "Scaler": _scaled,
    "ZipMap": _map,
}
