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

from .buffers import INT8, Buffer, Wish
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

    invents = True

    def part(self, layer: Layer, wish: Wish) -> Buffer | None:
        if wish.part == "zero point":
            return None
        count = _counted(wish.shape)
        drawn = self._drawn(f"{layer.name}\0{wish.part}", count)
        if wish.integer and wish.part == "weight":
            return _buffer(INT8, wish.shape, np.rint(drawn * _WIDEST).astype(np.int8))
        if wish.integer and wish.part == "bias":
            return _buffer(_INT32, wish.shape, np.rint(drawn * 8).astype(np.int32))
        if wish.part == "scale" and wish.integer:  # the accumulator's scale, which brings it to the order of 1
            spread = _WIDEST / math.sqrt(3) / STEP
            return _buffer(_FLOAT, wish.shape, (1.5 + drawn * 0.5) / (spread * math.sqrt(wish.terms)))
        if wish.part in ("scale", "variance", "factor"):
            return _buffer(_FLOAT, wish.shape, 1 + drawn * 0.5)
        reach = math.sqrt(6 / wish.terms) if wish.terms > 1 else 1.0 if wish.terms else 0.1
        return _buffer(_FLOAT, wish.shape, drawn * reach)

    def constant(self, name: str, shape: tuple[int, ...] | None) -> Buffer | None:
        return None if shape is None else _buffer(_FLOAT, shape, self._drawn(name, _counted(shape)))

    def scale(self, blob: str) -> Mapping[str, Buffer] | None:
        return {"scale": _buffer(_FLOAT, (1,), np.full(1, STEP))}

    def _drawn(self, key: str, count: int) -> Array:
        """Random numbers from -1 to 1."""
        chance = np.random.default_rng((self.seed, zlib.crc32(key.encode())))
        return chance.random(count, np.float32) * 2 - 1


def _counted(shape: tuple[int, ...]) -> int:
    count = math.prod(shape)
    if not 0 <= count <= MOST:
        raise ModelError(f"weights of shape {list(shape)} have {count} elements, expected at most {MOST}")
    return count


def _buffer(code: int, shape: tuple[int, ...], elements: Array) -> Buffer:
    stored = elements.astype(np.float32) if code == _FLOAT else elements
    return Buffer(code, shape, np.ascontiguousarray(stored).data.cast("B") if stored.size else b"")
