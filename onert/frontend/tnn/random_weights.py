"""Random weights for a structure without a weight file.

TNN's benchmark uses random weights up to 1; here they are scaled so that values keep their order of magnitude through
a hundred layers. A layer's weights depend only on the seed and its name.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping

import numpy as np
from attrs import frozen

from onert.ir import Array, ModelError
from onert.ir.value import Value

from .buffers import INT8, Buffer, WeightRequest
from .structure import Layer

MOST = 1 << 28
"""The maximum number of elements of a buffer: a gibibyte of float32."""
STEP = 1 / 32
"""The scale of every quantised blob."""
_FLOAT, _INT32 = 0, 3
_WIDEST = 15
"""The maximum magnitude of an integer weight."""


@frozen
class RandomWeights(Value):
    """Weights drawn from `seed`."""

    seed: int

    generated = True

    def buffer(self, layer: Layer, request: WeightRequest) -> Buffer | None:
        if request.name == "zero point":
            return None
        count = _checked_count(request.shape)
        drawn = self._random(f"{layer.name}\0{request.name}", count)
        if request.integer and request.name == "weight":
            return _buffer(INT8, request.shape, np.rint(drawn * _WIDEST).astype(np.int8))
        if request.integer and request.name == "bias":
            return _buffer(_INT32, request.shape, np.rint(drawn * 8).astype(np.int32))
        if request.name == "scale" and request.integer:  # the accumulator's scale, which brings it to the order of 1
            spread = _WIDEST / math.sqrt(3) / STEP
            return _buffer(_FLOAT, request.shape, (1.5 + drawn * 0.5) / (spread * math.sqrt(request.terms)))
        if request.name in ("scale", "variance", "factor"):
            return _buffer(_FLOAT, request.shape, 1 + drawn * 0.5)
        reach = math.sqrt(6 / request.terms) if request.terms > 1 else 1.0 if request.terms else 0.1
        return _buffer(_FLOAT, request.shape, drawn * reach)

    def constant(self, name: str, shape: tuple[int, ...] | None) -> Buffer | None:
        return None if shape is None else _buffer(_FLOAT, shape, self._random(name, _checked_count(shape)))

    def scale(self, blob: str) -> Mapping[str, Buffer] | None:
        return {"scale": _buffer(_FLOAT, (1,), np.full(1, STEP))}

    def _random(self, key: str, count: int) -> Array:
        """Random numbers from -1 to 1."""
        chance = np.random.default_rng((self.seed, zlib.crc32(key.encode())))
        return chance.random(count, np.float32) * 2 - 1


def _checked_count(shape: tuple[int, ...]) -> int:
    count = math.prod(shape)
    if not 0 <= count <= MOST:
        raise ModelError(f"weights of shape {list(shape)} have {count} elements, expected at most {MOST}")
    return count


def _buffer(code: int, shape: tuple[int, ...], elements: Array) -> Buffer:
    stored = elements.astype(np.float32) if code == _FLOAT else elements
    return Buffer(code, shape, np.ascontiguousarray(stored).data.cast("B") if stored.size else b"")
