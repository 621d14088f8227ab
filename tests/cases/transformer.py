"""Cases of decoder layers: several heads and tokens, masks, NaN and infinite states, several experts."""

from __future__ import annotations

import numpy as np
from formulas import floats

from onert.ir import Array
from onert.ir.ops.contraction.attention import Attention, Pairing, RoPE
from onert.ir.ops.contraction.experts import MixtureOfExperts
from onert.ir.ops.contraction.hadamard import HadamardRotation
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import AddN
from onert.ir.ops.elementwise.convert import FakeQuant

from .case import Case

_ANGLES = np.arange(12, dtype=np.float32).reshape(1, 3, 4) / 7
_TABLES = np.sin(_ANGLES), np.cos(_ANGLES)
_ALONG = floats((2, 2, 3, 4))


def _attention(
    name: str, tokens: int, position: int, mask: Array | None = None, size: int = 6, garbage: float = 0
) -> Case:
    """Two heads of four; cache entries after the tokens contain garbage that must not be read."""
    weights = tuple(floats((8, 8), step) / 2 for step in (37, 31, 29, 23))
    caches = [floats((1, size, 2, 4), step).copy() for step in (41, 43)]
    for cache in caches:
        cache[:, position + tokens :] = garbage
    tables = [np.ascontiguousarray(t[:, :tokens]) for t in reversed(_TABLES)]
    x = floats((1, tokens, 8), 19)
    arrays = (x, *weights, *tables, mask, *caches, np.int32([position]))
    return Case(name, Attention(), arrays, constant=(1, 2, 3, 4), tolerance=1e-4)


def _experts(name: str, rows: int, experts: int, chosen: int) -> Case:
    rng = np.random.default_rng(7)
    features, hidden = 4, 3
    arrays = (
        floats((1, rows, features)),
        floats((1, rows, chosen), 11),
        rng.integers(-experts, experts, (1, rows, chosen)).astype(np.int32),
        floats((hidden, experts, 1, features), 23),
        floats((hidden, experts, 1, features), 29),
        floats((features, experts, 1, hidden), 31),
        floats((experts,), 13),
    )
    return Case(
        name, MixtureOfExperts(experts, chosen, features, hidden), arrays, constant=(3, 4, 5, 6), tolerance=1e-4
    )


CASES = [
    Case(
        "a rotation of one pair",
        HadamardRotation(2),
        (np.float32([[3, 1]]),),
        (np.float32([[8, 4]]) / np.float32(8**0.5),),
    ),
    Case(
        "rotations of four",
        HadamardRotation(4),
        (np.float32([1, 2, 4, 8, 1, 0, 0, 0]),),
        (np.float32([7.5, -2.5, -4.5, 1.5, 0.5, 0.5, 0.5, 0.5]),),
    ),
    Case("a rotation of many, by two products", HadamardRotation(128), (floats((2, 3, 256)),), tolerance=1e-5),
    Case("halves of several heads", RoPE(), (_ALONG, *_TABLES)),
    Case("neighbours of several heads", RoPE(Pairing.NEIGHBORS), (_ALONG, *_TABLES)),
    Case("one vector", RoPE(), (floats((4,)), *(t[0, 1] for t in _TABLES))),
    _attention("a token without a mask", 1, 2),
    _attention("tokens at the start", 3, 0),
    _attention("tokens after others", 3, 3),
    _attention("what lies behind is no number", 2, 1, garbage=np.nan),
    _attention("infinities lie behind", 1, 3, garbage=np.inf),
    _attention("a mask of fewer positions", 2, 1, np.float32([[0, -np.inf, 0, 1], [0, 0, 0, -1]])),
    _attention("a mask of more positions", 2, 1, floats((1, 1, 1, 9))),
    _attention("a row of which all is hidden", 1, 1, np.full((1, 4), -np.inf, np.float32)),
    _experts("three rows, two of three experts", 3, 3, 2),
    _experts("one expert each", 2, 4, 1),
    Case("to a scalar", Reshape(), (np.float32([[3]]), np.zeros(0, np.int32)), (np.float32(3),), constant=(1,)),
    Case("bytes to a scalar", Reshape(()), (np.int8([3]),), (np.array(3, np.int8),)),
    Case("many summands", AddN(), tuple(floats((2, 3), 2 * i + 1) for i in range(70))),
    Case("special numbers in eighths", FakeQuant(-1, 1, 4), (np.float32([np.nan, np.inf, -np.inf, 0, 0.3, -0.9]),)),
    Case("a narrow range above 0", FakeQuant(1, 5, 8, narrow=True), (floats((3, 4)) * 2,)),
]
