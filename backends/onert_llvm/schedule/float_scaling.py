"""Multipliers of exact sums as floats, chosen so that every sum rounds as it does in TFLite's integer arithmetic.

With M = mantissa / 2**(31 + e) the two roundings of a fixed-point multiplier (`requantize_int8`) are one: for a sum x
of at least 0 both floors together are floor(x · M + 1/2 + d), where d is 2**-(e + 1), or 0 where e is 0; a negative sum
gives the negative of what its magnitude gives. So the result reaches i at the first integer x that is not below z(i) =
(i - 1/2 - d) / M. Another function with the same steps may add anything that moves no z(i) across an integer. That is
room for what floats do not hold: the middle of it is taken, and what rounding can move has to be less.

A kernel computes with numbers of 24 bits, factor + rest = M to within 2**-48 of it:

    floor(x · factor + (x · rest + added))    the outer sum rounded down, which changes no floor

Only the inner sum, which is rounded to the nearest, is inexact. Nearly all that is added, the zero point too, is a
number of steps of x, which the sum begins with, so that the inner sum stays below 2**-16 + M. Sums below 0 have an
`added` of their own, unless results below the zero point are cut off anyway.

Weights that are nearly 0 have multipliers that would take sums of more than 24 bits, but then such a column's sums are
all near its bias: their results are all the same, or a few neighbours.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import Array

_WHOLE = 1 << 24
"""Integers up to here are floats."""
_BEYOND = float(1 << 30)
"""Results below it are 32-bit integers with room to spare."""
_INEXACT = 2.0**-50
"""What each z(i) is known to within, in parts of it: it is computed in float64."""
_CHUNK = 48
"""Columns whose steps are computed together, near the core."""


@frozen(eq=False)
class FloatMultipliers:
    """Of each column: `steps` that its sums begin with beside the bias, and the numbers in float32.

    `added` is for sums of at least 0, `below` for others.
    """

    steps: Array
    factor: Array
    rest: Array
    added: Array
    below: Array


@frozen(eq=False)
class Sums:
    """What is known of n columns' sums: what they begin with, and by how much they differ from that at most."""

    bias: Array
    spread: Array

    @property
    def bounds(self) -> Array:
        """The largest magnitude of each."""
        found: Array = np.abs(self.bias) + self.spread
        return found


def fitted(
    reals: Array, late: Array, sums: Sums, limits: tuple[int, int], zero_point: int, *, rectified: bool, alike: bool
) -> FloatMultipliers | None:
    """Multipliers of n columns (float64) as floats; None if there are no such floats.

    `late` are the d above. Results are within `limits`, and where they are `rectified` none is below the zero point.
    `alike`: a sum half-way between two results goes away from zero whatever its sign.
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
        return None  # what TFLite multiplies in float64 is rounded there
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
    """How far the first x of a result is above z(i), the least and the most of all results, in 0 to 1."""
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
"""Steps that a line with a step of its own choice goes through."""


def _with_few(
    found: FloatMultipliers, columns: Array, reals: Array, late: Array, sums: Sums, bounds: tuple[int, int], zero: int
) -> FloatMultipliers | None:
    """The same where these columns have few results each; None if one has more."""
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
    """What a sum times its multiplier becomes; None if it is too near to the next result to tell."""
    size = abs(scaled) + half
    if abs(size - round(size)) < 1e-6:
        return None
    return int(np.copysign(np.floor(size), scaled))
