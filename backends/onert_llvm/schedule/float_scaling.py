"""Float multipliers for exact sums, chosen so that every sum rounds as in TFLite's integer arithmetic.

With M = mantissa / 2**(31 + e), the two roundings of a fixed-point multiplier (`requantize_int8`) combine into one: for
a sum x >= 0 the two floors together are floor(x · M + 1/2 + d), where d is 2**-(e + 1), or 0 if e is 0; a negative sum
gives the negated result of its magnitude. So the result reaches i at the first integer x that is not below z(i) =
(i - 1/2 - d) / M. Another function with the same steps may add anything that moves no z(i) across an integer. This is
the margin for what floats cannot represent: its middle is used, and rounding errors must be smaller than its half.

A kernel computes with 24-bit numbers, factor + rest = M to within 2**-48 of it:

    floor(x · factor + (x · rest + added))    the outer sum rounded down, which changes no floor

Only the inner sum, rounded to nearest, is inexact. Nearly all that is added, the zero point included, is a number of
steps of x that the sum starts with, so the inner sum stays below 2**-16 + M. Negative sums have their own `added`,
unless results below the zero point are cut off anyway.

Weights that are nearly 0 have multipliers that would need sums of more than 24 bits, but the sums of such a column are
all near its bias, so their results are all the same or a few neighbours.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import Array

_WHOLE = 1 << 24
"""Integers up to this are exact in float32."""
_BEYOND = float(1 << 30)
"""Results below this are 32-bit integers with room to spare."""
_INEXACT = 2.0**-50
"""The relative error of each z(i), which is computed in float64."""
_CHUNK = 48
"""Columns whose steps are computed together, so that they stay in the core's cache."""


@frozen(eq=False)
class FloatMultipliers:
    """Per column: the `steps` that its sums start with besides the bias, and the float32 numbers.

    `added` is for sums of at least 0, `below` for negative ones.
    """

    steps: Array
    factor: Array
    rest: Array
    added: Array
    below: Array


@frozen(eq=False)
class Sums:
    """The known range of n columns' sums: what they start with, and their largest deviation from it."""

    bias: Array
    spread: Array

    @property
    def bounds(self) -> Array:
        """The largest magnitude of each sum."""
        found: Array = np.abs(self.bias) + self.spread
        return found


def fitted(
    reals: Array, late: Array, sums: Sums, limits: tuple[int, int], zero_point: int, *, rectified: bool, alike: bool
) -> FloatMultipliers | None:
    """Float multipliers of n columns for `reals` (float64); None if no floats round correctly.

    `late` are the d above. Results are within `limits`; if `rectified`, none is below the zero point. `alike`: a sum
    half-way between two results rounds away from zero whatever its sign.
    """
    low, high = (limit - zero_point for limit in limits)
    most = max(high, -low, 1)
    reach = most + abs(zero_point) + 2
    few = reals * _WHOLE <= reach
    own = np.where(few, 1.0, reals)
    if not (np.isfinite(reals) & (reals >= 0)).all() or (sums.bounds * reals).max() >= _BEYOND:
        return None
    first, last = _room(own, late, most)
    near = _INEXACT * reach / own
    unclear = np.flatnonzero(~few & ((first < near) | (last > 1.0 - near)))
    if alike and len(unclear):
        return None  # TFLite's product in float64 is rounded there
    for column in unclear.tolist():
        first[column], last[column] = _exact_room(float(own[column]), float(late[column]), most)
    if not rectified and (first[unclear] == 0).any():
        return None  # half-way between two results: the sign decides
    middle = (1.0 - last - first) / 2
    above = 0.5 + late + middle * own
    steps = np.rint((above + zero_point) / own)
    factor = own.astype(np.float32)
    rest = (own - factor).astype(np.float32)
    spare = np.minimum(first + middle, 1.0 - last - middle)
    both = []
    for wanted in (above, 1.0 - above):
        exactly = wanted + zero_point - steps * own
        added = exactly.astype(np.float32)
        _, exponent = np.frexp(np.abs(added) + np.abs(rest) * reach / own)
        error = np.abs(added - exactly) + np.ldexp(1.0, exponent - 25) + np.abs(rest) * reach / own * 2.0**-24
        if (spare <= near + error / own).any():
            return None
        both.append(added)
        if rectified:
            both.append(added)
            break
    if (sums.bounds + np.where(few, 0, np.abs(steps))).max() >= 1 << 31:
        return None  # sums wrap
    found = FloatMultipliers(steps.astype(np.int64), factor, rest, *both)
    return _with_few(found, np.flatnonzero(few), reals, late, sums, (low, high), zero_point) if few.any() else found


def _room(reals: Array, late: Array, most: int) -> tuple[Array, Array]:
    """The smallest and the largest distance, over all results, of a result's first x above z(i), in 0 to 1."""
    inverse = (1.0 / reals)[:, None]
    before = (0.5 + late)[:, None] * inverse
    first, last = np.empty(len(reals)), np.empty(len(reals))
    numbers = np.arange(1, most + 1, dtype=np.float64)
    for start in range(0, len(reals), _CHUNK):
        own = slice(start, start + _CHUNK)
        z = numbers * inverse[own]
        z -= before[own]
        up = np.ceil(z)
        up -= z
        up.min(axis=1, out=first[own])
        up.max(axis=1, out=last[own])
    return first, last


def _exact_room(real: float, late: float, most: int) -> tuple[float, float]:
    """The same for one multiplier, in integers."""
    (p, q), (a, b) = real.as_integer_ratio(), (0.5 + late).as_integer_ratio()
    whole = b * p
    above = [-((i * b - a) * q) % whole for i in range(1, most + 1)]
    return min(above) / whole, max(above) / whole


_FEW = 2
"""The most steps that a line of free slope can pass through."""


def _with_few(
    found: FloatMultipliers, columns: Array, reals: Array, late: Array, sums: Sums, bounds: tuple[int, int], zero: int
) -> FloatMultipliers | None:
    """Fits columns that have few results each; None if one has more."""
    for column in columns.tolist():
        real, half = float(reals[column]), 0.5 + float(late[column])
        bias, spread = float(sums.bias[column]), float(sums.spread[column])
        ends = [_result(x * real, half) for x in (bias - spread, bias + spread)]
        least, most = (None if x is None else min(max(x, bounds[0]), bounds[1]) for x in ends)
        if least is None or most is None or most - least > _FEW:
            return None
        reached = [_first(i, real, half) for i in range(least + 1, most + 1)]
        slope = np.float32(0 if not reached else real if len(reached) == 1 else 1 / (reached[1] - reached[0] - 0.5))
        if len(reached) == _FEW and not (reached[1] - reached[0] - 1) * slope < 1 <= (reached[1] - reached[0]) * slope:
            return None
        found.steps[column] = -reached[0] if reached else 0
        found.factor[column], found.rest[column] = slope, 0.0
        found.added[column] = found.below[column] = zero + (least + 1 if reached else least)
    return found


def _first(i: int, real: float, half: float) -> int:
    """The first sum whose result is `i`."""
    return int(np.ceil((i - half) / real) if i > 0 else 1 - np.ceil((1 - i - half) / real))


def _result(scaled: float, half: float) -> int | None:
    """The rounded product of a sum and its multiplier; None if it is too near to the next result to tell."""
    size = abs(scaled) + half
    if abs(size - round(size)) < 1e-6:
        return None
    return int(np.copysign(np.floor(size), scaled))
