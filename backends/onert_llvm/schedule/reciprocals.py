"""Division by a constant as products that round to the same whole numbers.

`v * inverse + v * rest`, rounded once at the end, is the quotient of two floats to within some 2**-48 of it. Rounded to
float32, it differs from the quotient only very near the midpoint of two floats. That matters only if the two are on
either side of a half-way point between whole numbers, or on it, so it suffices to check the floats around those v whose
quotient reaches such a point.
"""

from __future__ import annotations

import numpy as np

from onert.ir import Array

LEAST, MOST = 2.0**-40, 2.0**40
"""Divisors in this range neither overflow nor lose digits."""
_AROUND = 4
"""Floats checked on either side: a quotient is within one of its own last digits, which are 2 steps of v."""


def reciprocal(divisor: np.float32, most: int) -> tuple[np.float32, np.float32] | None:
    """Two positive floats whose sum is the inverse of a positive divisor, such that whole numbers of magnitude up to
    `most` equal those of the quotient, and larger and infinite ones stay larger; None if there are no such floats.
    """
    if not LEAST <= divisor <= MOST:
        return None
    exact = 1.0 / float(divisor)
    first = np.nextafter(np.float32(exact), np.float32(0))
    rest = np.float32(exact - float(first))
    halves = np.arange(-most, most + 1) + 0.5
    near = (halves * float(divisor)).astype(np.float32)
    values = near.view(np.int32)[:, None] + np.arange(-_AROUND, _AROUND + 1, dtype=np.int32)
    v = values.astype(np.int32).view(np.float32)
    same = np.array_equal(np.rint(v / divisor), np.rint(_multiplied(v, first, rest)))
    return (first, rest) if same else None


def _multiplied(v: Array, first: np.float32, rest: np.float32) -> Array:
    """What a kernel computes; NaN if float64 cannot determine how the sum is rounded."""
    added = (v * rest).astype(np.float64)
    total = v.astype(np.float64) * float(first)
    whole = total + added
    lost = added - (whole - total)
    found = whole.astype(np.float32)
    steps = [np.nextafter(found, np.float32(bound)).astype(np.float64) for bound in (-np.inf, np.inf)]
    middle = [(found.astype(np.float64) + step) / 2 for step in steps]
    unclear = (lost != 0) & ((whole == middle[0]) | (whole == middle[1]))
    out: Array = np.where(unclear, np.float32(np.nan), found)
    return out
