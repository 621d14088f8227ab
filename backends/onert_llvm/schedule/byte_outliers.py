"""Weights of unsigned bytes with an off-centre zero point: nearly all are signed bytes after it is subtracted.

A scale is chosen so that the least or the greatest weight of a layer just fits, so with the zero point at 140 some
weight is -140 and few others are below -128. What exceeds the byte range is multiplied separately, group by group of
terms; the row sums that would be multiplied by the zero point are then not needed.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import Array

_FEW, _SHARE = 4, 8
"""The most groups of terms with outliers, as a number and as a fraction of all; with more, row sums are faster."""


@frozen(eq=False)
class RowAgain:
    """A depthwise filter `[height, width, n]` less its zero point: `whole` in 16 bits, and as `bytes` with a row more.

    That last row is what remains of row `number` after clipping it to bytes.
    """

    whole: Array
    bytes: Array
    number: int


def with_row_again(weights: Array, zero: int, group: int) -> RowAgain | None:
    """The same for signed bytes `weights[height, width, n]` multiplied in groups of rows, if a group has a free row.

    None if the zero point is 0, there is no free row, or the outliers are not in exactly one row.
    """
    if zero == 0 or len(weights) % group == 0:
        return None
    whole = weights.astype(np.int16) - np.int16(zero)
    inside = whole.clip(-128, 127)
    beyond = whole - inside
    rows = np.flatnonzero(beyond.any(axis=(1, 2)))
    if len(rows) != 1 or np.abs(beyond).max() > 127:
        return None
    number = int(rows[0])
    return RowAgain(whole, np.concatenate([inside, beyond[number : number + 1]]).astype(np.int8), number)


@frozen(eq=False)
class Outliers:
    """A filter `[taps, k, n]` less its zero point: `whole` in 16 bits, and clipped to `bytes`.

    The remainders are groups of terms: `taps` and `firsts` say where they begin, `beyond[groups, group, n]` are signed
    bytes.
    """

    whole: Array
    bytes: Array
    taps: Array
    firsts: Array
    beyond: Array


def split(weights: Array, zero: int, group: int) -> Outliers | None:
    """Signed bytes `weights[taps, k, n]` less their zero point; None if it is 0 or there are too many outliers."""
    taps, depth, n = weights.shape
    if zero == 0 or depth < group:
        return None
    whole = weights.astype(np.int16) - np.int16(zero)
    inside = whole.clip(-128, 127)
    beyond = whole - inside
    found = np.flatnonzero(beyond.any(axis=2).reshape(-1))
    firsts = np.minimum(found % depth // group * group, depth - group)
    places = np.unique(np.stack([found // depth, firsts], axis=1), axis=0)
    if len(places) > max(_FEW, taps * -(-depth // group) // _SHARE) or np.abs(beyond).max(initial=0) > 127:
        return None
    left, groups = beyond.copy(), []
    for tap, first in places.tolist():
        groups.append(left[tap, first : first + group].astype(np.int8))
        left[tap, first : first + group] = 0  # a last group that begins earlier shares terms with the previous one
    taken = np.stack(groups) if groups else np.zeros((0, group, n), np.int8)
    return Outliers(whole, inside.astype(np.int8), places[:, 0], places[:, 1], taken)
