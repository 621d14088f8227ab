"""Rounding of numbers to the floats that a model computes: numbers of a trace are float64 otherwise."""

from __future__ import annotations

import struct
from math import isfinite


def as_float32(x: float) -> float:
    """The nearest float32; raises OverflowError if there is none.

    Of a sum, product or quotient of two float32s in float64, it is what float32 arithmetic gives.
    """
    found: float = struct.unpack("f", struct.pack("f", x))[0]
    return as_float64(found)


def as_float64(x: float) -> float:
    """The number itself; raises OverflowError if it is infinite or NaN."""
    if not isfinite(x):
        raise OverflowError(f"{x} is not finite")
    return x
