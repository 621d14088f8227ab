"""Cases of circle's operators and of ONE's custom operators."""

from __future__ import annotations

import numpy as np
from formulas import floats

from onert.ir import Array
from onert.ir.ops.contraction.attention import Attention, Pairing, RoPE
from onert.ir.ops.contraction.binary_coding import BcqFullyConnected, BcqGather
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.experts import MixtureOfExperts
from onert.ir.ops.data_movement.diagonal import MatrixBandPart
from onert.ir.ops.data_movement.random_numbers import StatelessUniform
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.norm import BatchNorm

from .case import Case

_EYE = np.eye(2, dtype=np.float32)
_QUARTER = (np.float32([[[1, 1, 1, 1]]]), np.float32([[[0, 0, 0, 0]]]))
"""Sines and cosines of a quarter turn."""
_CLUSTERS = np.int32([[2, 1], [1, 1]])
_PLANES = (np.float32([1, 2, 3]), np.int32([[0b01], [0b11], [0b10]]))
"""Rows of 1 * (1, -1) + 2 * (1, 1), and of 3 * (-1, 1)."""

_ATTENDING = (np.float32([[[0, 0]]]), _EYE, _EYE, _EYE, _EYE, np.float32([[1, 1]]), np.float32([[0, 0]]))


def _second_token(name: str, mask: Array | None, at: Array, wanted: Array) -> Case:
    """Attention with room for three tokens, of which the first is stored."""
    keys = np.zeros((1, 3, 1, 2), np.float32)
    before, after = (np.float32([[3, 5], second, [9, 9]]).reshape(1, 3, 1, 2) for second in ([7, 7], [0, 0]))
    return Case(name, Attention(), (*_ATTENDING, mask, keys, before, at), (wanted, keys, after))


CASES = [
    Case(
        "a row through one of two experts, and a row through both",
        MixtureOfExperts(2, 2, 1, 1),
        (
            np.float32([[[20], [10]]]),
            np.float32([[[1, 0.5], [0.5, 0.25]]]),
            np.int32([[[1, 1], [0, -1]]]),
            np.float32([1, 2]).reshape(1, 2, 1, 1),
            np.float32([1, 3]).reshape(1, 2, 1, 1),
            np.float32([1, -1]).reshape(1, 2, 1, 1),
            np.float32([2, 1]).reshape(1, 1, 1, 2),
        ),
        # gelu(x) is x for x of 10 and more: expert 0 gives 2 x², expert 1 gives -6 x²
        (np.float32([[[-6 * 400 * 1.5], [2 * 100 * 0.5 - 6 * 100 * 0.25]]]),),
        constant=(3, 4, 5, 6),
    ),
    Case("halves", RoPE(), (np.float32([[[1, 2, 3, 4]]]), *_QUARTER), (np.float32([[[-3, -4, 1, 2]]]),)),
    Case(
        "neighbours",
        RoPE(Pairing.NEIGHBORS),
        (np.float32([[[1, 2, 3, 4]]]), *_QUARTER),
        (np.float32([[[-2, 1, -4, 3]]]),),
    ),
    # both scores are 0, so each value counts half
    _second_token("the second token sees the first", None, np.int32([1]), np.float32([[[1.5, 2.5]]])),
    _second_token(
        "a mask hides the first token", np.float32([[-np.inf, 0, -np.inf]]), np.int64([1]), np.float32([[[0, 0]]])
    ),
    Case(
        "scaled signs times columns",
        BcqFullyConnected(2),
        (np.float32([[1, 0], [0, 1]]), *_PLANES, np.float32([10, 20]), _CLUSTERS),
        (np.float32([[13, 11], [17, 23]]),),
        constant=(4,),
    ),
    Case("rows of scaled signs", BcqGather(2), (*_PLANES, np.int32([1]), _CLUSTERS), (np.float32([[-3, 3]]),)),
    Case("columns of scaled signs", BcqGather(2, 1), (*_PLANES, np.int32([1]), _CLUSTERS), (np.float32([[1], [3]]),)),
    Case("a product", Einsum("ab,bc->ca"), (np.float32([[1, 2]]), np.float32([[3], [4]])), (np.float32([[11]]),)),
    Case("a sum", Einsum("ab->b"), (np.float32([[1, 2], [3, 4]]),), (np.float32([4, 6]),)),
    Case(
        "a band",
        MatrixBandPart(),
        (np.int32([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), np.array(1), np.array(0)),
        (np.int32([[1, 0, 0], [4, 5, 0], [0, 8, 9]]),),
    ),
    Case(
        "all below",
        MatrixBandPart(),
        (np.int32([[1, 2], [4, 5], [7, 8]]), np.int32([-1]), np.int32([0])),
        (np.int32([[1, 0], [4, 5], [7, 8]]),),
    ),
    Case(
        "given statistics",
        BatchNorm(0.0),
        (np.float32([[1, 2], [3, 4]]), *(np.float32(x) for x in ([2, 1], [0, 1], [1, 2], [4, 1]))),
        (np.float32([[0, 1], [2, 3]]),),
    ),
    Case(
        "numbers of a seed",
        StatelessUniform(),
        (np.int32([2]), np.int32([1, 2])),
        # tf.random.stateless_uniform([2], [1, 2]) on a CPU
        (np.float32([0.8440604209899902, 0.19204533100128174]),),
        constant=(0,),
    ),
    Case("error function", Unary(UnaryKind.ERF), (np.float32([0, 1]),), (np.float32([0, 0.8427008]),)),
    Case(
        "columns of more",
        BcqFullyConnected(40),
        (floats((40, 0)), *(np.zeros(0, t) for t in (np.float32, np.int32)), None, np.zeros((0, 2), np.int32)),
        (np.zeros((0, 0), np.float32),),
    ),
]
