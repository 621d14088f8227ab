"""Operators that ONNX Runtime's optimiser fuses: products, activations and normalisations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import evolve

from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.messages import Attribute, Kind
from onert.frontend.onnx.node import NEWEST, Importer, Node
from onert.frontend.onnx.table.elements.activations import TABLE as ACTIVATIONS
from onert.frontend.onnx.table.elements.elementwise import TABLE as ELEMENTWISE
from onert.frontend.onnx.table.layers.convolution import TABLE as CONVOLUTIONS
from onert.frontend.onnx.table.layers.normalization import TABLE as NORMALIZATIONS
from onert.frontend.onnx.table.layers.normalization import mean_of, standardized
from onert.frontend.onnx.table.layers.products import TABLE as PRODUCTS
from onert.frontend.onnx.table.layers.products import matmul
from onert.frontend.onnx.table.layers.rotary import rotary_embedding
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind

from .standard import as_standard


def _transpose_by(node: Node, x: Expression, name: str, batches: str) -> Expression:
    """Swap the last two axes, or move the first axis behind the other batch axes, if attributes say so."""
    if node.flag(batches):
        x = x.transpose(*range(1, x.rank - 1), 0, x.rank - 1)
    if node.flag(name) and x.rank > 1:
        x = x.transpose(*range(x.rank - 2), x.rank - 1, x.rank - 2)
    return x


def _fused_matmul(node: Node) -> int:
    x = _transpose_by(node, operand(node, 0), "transA", "transBatchA")
    y = _transpose_by(node, operand(node, 1), "transB", "transBatchB")
    found = x.of(matmul(node.draft, x.operand, y.operand))
    alpha = node.number("alpha", 1.0)
    return (found if alpha == 1 else found * alpha).operand


def _activated(node: Node, x: Expression) -> Expression:
    """Apply the activation in the attribute `activation`, an operator of ONNX's own.

    A convolution lists its numbers in `activation_params`; a product has `activation_alpha`, `_beta` and `_gamma`.
    """
    name, numbers = node.text("activation"), node.numbers("activation_params") or ()
    if not name:
        return x
    if name == "Clip":  # its bounds are inputs of ONNX's own operator
        if len(numbers) != 2:
            raise ModelError(f"activation_params are {numbers}, expected the two bounds of Clip")
        return x.at_least(numbers[0]).at_most(numbers[1])
    if name not in _FUSED_ACTIVATIONS:
        raise ModelError(f"activation is {name!r}, expected {', '.join(_FUSED_ACTIVATIONS)} or Clip")
    given = dict(zip(_PARAMETERS, numbers, strict=False))
    given |= {of: node.number(f"activation_{of}") for of in _PARAMETERS if node.has_attribute(f"activation_{of}")}
    attributes = {of: Attribute(of, Kind.FLOAT, number) for of, number in given.items()}
    found = _FUSED_ACTIVATIONS[name](evolve(node, inputs=(x.operand,), attributes=attributes, version=NEWEST))
    assert isinstance(found, int)
    return x.of(found)


_PARAMETERS = ("alpha", "beta", "gamma")
_FUSED_ACTIVATIONS: dict[str, Importer] = {
    **{name: ELEMENTWISE[name] for name in ("Relu", "Sigmoid", "Tanh")},
    **{
        name: ACTIVATIONS[name]
        for name in ("Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "Selu", "Softplus", "Softsign", "ThresholdedRelu")
    },
}


def _with_activation(importer: Importer, node: Node, *, added: int | None = None) -> int:
    """Another operator, plus an optional addend, followed by an activation."""
    inputs = node.inputs if added is None else node.inputs[:added]
    found = importer(evolve(node, inputs=inputs, version=NEWEST))
    if not isinstance(found, int):
        raise ModelError("has several results, expected one")
    x = Expression(node.draft, found)
    x = x + operand(node, added) if added is not None and node.has(added) else x
    return _activated(node, x).operand


def _of_biased(function: Callable[[Expression], Expression], node: Node) -> int:
    """A function of the input plus an optional bias."""
    x = operand(node, 0)
    return function(x + operand(node, 1) if node.has(1) else x).operand


def _quick_gelu(node: Node) -> int:
    x = operand(node, 0)
    return (x * (x * node.number("alpha", 1.702)).unary(UnaryKind.LOGISTIC)).operand


def _skip(node: Node) -> tuple[int | None, ...]:
    """Layer normalisation of input + skip + bias, with beta; the fourth result is that sum."""
    x = operand(node, 0) + operand(node, 1)
    x = x + operand(node, 4) if node.has(4) else x
    found, mean, inverse = standardized(node.draft, x.operand, (x.rank - 1,), node.number("epsilon", 1e-12))
    y = x.of(found) * operand(node, 2)
    y = y + operand(node, 3) if node.has(3) else y
    return y.operand, mean, inverse, x.operand


def _skip_simplified(node: Node) -> tuple[int | None, ...]:
    """RMS normalisation of input + skip + bias; the fourth result is that sum."""
    x = operand(node, 0) + operand(node, 1)
    x = x + operand(node, 3) if node.has(3) else x
    squares = x.of(mean_of(node.draft, (x * x).operand, (x.rank - 1,)))
    inverse = (squares + node.number("epsilon", 1e-12)).unary(UnaryKind.RSQRT)
    return (x * inverse * operand(node, 2)).operand, None, inverse.operand, x.operand


def embedded(
    node: Node, real: Callable[[int, Expression], Expression], places: Expression | None
) -> tuple[int | None, ...]:
    """Sum of word, position and segment embeddings, normalised; and the number of words that are not masked.

    Inputs: words, segments, three tables, gamma, beta, a mask. `real` returns the real numbers of what is taken from an
    input. `places` are the positions, by default each word's index.
    """
    words = operand(node, 0)
    if words.rank != 2:
        raise ModelError(f"words are {words.type}, expected 2 dimensions")
    places = words.size(1).arange().unsqueeze(0) if places is None else places

    def rows(at: int, indices: Expression) -> Expression:
        return real(at, operand(node, at).take(indices, 0))

    x = rows(2, words) + rows(3, places)
    x = x + rows(4, operand(node, 1)) if node.has(1) and node.has(4) else x
    found, _, _ = standardized(node.draft, x.operand, (2,), node.number("epsilon", 1e-12))
    y = x.of(found) * real(5, operand(node, 5)) + real(6, operand(node, 6))
    if node.has(7):
        counted = operand(node, 7).equals(1).cast(DType.INT32).sum(1, keep=False)
    else:
        counted = words.of(node.draft.constant(0, DType.INT32)).broadcast(words.size(0))
    return y.operand, counted.operand, x.operand


def _embedded(node: Node) -> tuple[int | None, ...]:
    """Embeddings from tables of floats; positions are input 8."""
    return embedded(node, lambda _, x: x, operand(node, 8) if node.has(8) else None)


def _rotary(node: Node) -> int:
    """Rotary embedding; positions are one offset for all sequences, or one position per token."""
    d, x = node.draft, operand(node, 0)
    places, cos, sin = (operand(node, at) for at in (1, 2, 3))
    width = node.integer("rotary_embedding_dim")
    flat = x.rank == 3
    if flat:
        features = x.known_size(2, "the input")
        each = width or 2 * cos.known_size(1, "a table")
        heads = node.integer("num_heads") or features // max(each, 1)
        if heads < 1 or features % heads:
            raise ModelError(f"{heads} heads do not fit {x.type}")
        x = x.reshape_by(x.size(0), x.size(1), heads, features // heads).transpose(0, 2, 1, 3)
    if places.rank not in (1, 2):
        raise ModelError(f"positions are {places.type}, expected 1 or 2 dimensions")
    if places.rank == 1:
        places = places.reshape(1, 1) + x.size(2).arange().reshape(1, None)
    tables = [table.take(places, 0) for table in (cos, sin)]
    if places.shape[0] == 1:
        tables = [table.squeeze(0) for table in tables]
    width = width or x.known_size(3, "the input")
    y = rotary_embedding(x, tables[0], tables[1], width, interleaved=node.flag("interleaved"))
    if not flat:
        return y.operand
    y = y.transpose(0, 2, 1, 3)
    total = y.known_size(2, "the input") * y.known_size(3, "the input")
    return Expression(d, y.operand).reshape_by(y.size(0), y.size(1), total).operand


MICROSOFT: dict[str, Importer] = {
    "BiasAdd": lambda node: (operand(node, 0) + operand(node, 1) + operand(node, 2)).operand,
    "BiasGelu": partial(_of_biased, lambda x: x.unary(UnaryKind.GELU)),
    "EmbedLayerNormalization": _embedded,
    "FastGelu": partial(_of_biased, lambda x: x.unary(UnaryKind.GELU_TANH)),
    "FusedConv": partial(_with_activation, CONVOLUTIONS["Conv"], added=3),
    "FusedGemm": partial(_with_activation, PRODUCTS["Gemm"]),
    "FusedMatMul": _fused_matmul,
    "QuickGelu": _quick_gelu,
    "RotaryEmbedding": _rotary,
    "SimplifiedLayerNormalization": as_standard(NORMALIZATIONS["RMSNormalization"]),
    "SkipLayerNormalization": _skip,
    "SkipSimplifiedLayerNormalization": _skip_simplified,
    "TransposeMatMul": _fused_matmul,
}
TABLE = {"SimplifiedLayerNormalization": MICROSOFT["SimplifiedLayerNormalization"]}
