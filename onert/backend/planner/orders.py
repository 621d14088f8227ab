"""Placement orders: tensors that are hard to place come first."""

from __future__ import annotations

import numpy as np

from .claims import Claims


def by_size(claims: Claims) -> list[int]:
    """Largest first, equal sizes in the order of the run."""
    return sorted(range(len(claims)), key=lambda i: -claims.sizes[i])


def by_breadth(claims: Claims) -> list[int]:
    """Tensors of the moments with most bytes alive first; within a moment, largest first."""
    if not len(claims):
        return []
    moments = int(claims.last.max()) + 1
    breadth = np.zeros(moments + 1, np.int64)
    np.add.at(breadth, claims.first, claims.sizes)
    np.subtract.at(breadth, claims.last + 1, claims.sizes)
    breadth = np.cumsum(breadth)[:moments]
    rank = np.empty(moments, np.int64)
    rank[np.argsort(-breadth, kind="stable")] = np.arange(moments)
    # A tensor's rank is that of the broadest moment at which it is alive.
    broadest = [int(rank[a : b + 1].min()) for a, b in zip(claims.first.tolist(), claims.last.tolist(), strict=True)]
    return sorted(range(len(claims)), key=lambda i: (broadest[i], -claims.sizes[i]))


def by_span(claims: Claims) -> list[int]:
    """Longest lifetime first, then largest."""
    span = (claims.last - claims.first).tolist()
    return sorted(range(len(claims)), key=lambda i: (-span[i], -claims.sizes[i]))


def by_area(claims: Claims) -> list[int]:
    """Largest product of bytes and moments first."""
    span = (claims.last - claims.first + 1).tolist()
    return sorted(range(len(claims)), key=lambda i: -span[i] * claims.sizes[i])
