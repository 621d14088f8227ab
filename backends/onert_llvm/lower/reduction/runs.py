"""Runs of adjacent axes that are reduced or kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from .block import Block

Runs = Sequence[tuple[bool, int]]


def without_last(runs: Runs, count: int) -> Runs:
    """The runs that remain after removing `count` reduced ones from the end."""
    kept = list(runs)
    for _ in range(count):
        kept.pop(max(i for i, (reduced, _) in enumerate(kept) if reduced))
    return kept


def block_of(runs: Runs) -> Block:
    """The last run that is reduced, and the elements around it."""
    at = max(i for i, (reduced, _) in enumerate(runs) if reduced)
    before, after = (math.prod([n for _, n in part]) for part in (runs[:at], runs[at + 1 :]))
    return Block(before, runs[at][1], after)


def runs_of(shape: Sequence[int], axes: Sequence[int]) -> list[tuple[bool, int]]:
    """Runs of adjacent axes: whether they are reduced, and their elements; axes of size 1 are left out."""
    marked = [(i in axes, d) for i, d in enumerate(shape) if d != 1]
    return [(reduced, math.prod([d for _, d in group])) for reduced, group in groupby(marked, key=lambda pair: pair[0])]
