"""Divide a sequence of units: minimise the slowest part, then the bytes between parts, within a memory limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import frozen

from onert.host.errors import PartitionError
from onert.host.memory import rounded, type_bytes
from onert.ir import Array
from onert.ir.value import Value

from .costs import Seconds
from .units import UnitGraph

MOST_POINTS = 320
"""The most possible places to cut; in a longer network, consecutive units are combined."""
SLACK = 0.02
"""How much slower, relatively, the slowest part may become to reduce the bytes between parts."""


@frozen
class Division(Value):
    """A division into parts: `parts[p]` are the units of part p. Parts are in topological order.

    `slowest` is the seconds of the slowest part including its transfers; `cut_bytes` is the bytes that pass between
    parts, counted once for each reader.
    """

    parts: tuple[tuple[int, ...], ...]
    slowest: float
    cut_bytes: int


def least_parts(graph: UnitGraph, seconds: Seconds, limit: int) -> int:
    """The fewest parts of at most `limit` bytes each. Raises PartitionError if a single unit is too large."""
    return min(_Line(graph, seconds, 1.0, order).least(limit) for order in orders(graph))


def divide(graph: UnitGraph, seconds: Seconds, count: int, link: float, limit: int | None = None) -> Division:
    """Divide the units into `count` parts, minimising first the slowest part and then the bytes between parts.

    `link` is the bandwidth between devices in bytes per second, `limit` the memory limit of a part in bytes. Parts are
    contiguous ranges of a topological order; the better of two such orders is used. Raises PartitionError if there are
    too few units, or if no division fits.
    """
    if count > len(graph.units):
        raise PartitionError(
            f"{count} partitions are requested, but the network has only {len(graph.units)} indivisible groups of "
            "operations (fusion groups and networks with dynamic inputs are not divided)"
        )
    found = [_Line(graph, seconds, link, order).divided(count, limit) for order in orders(graph)]
    possible = [division for division in found if division is not None]
    if not possible:
        raise PartitionError(f"no division into {count} partitions has at most {limit} bytes in each")
    return min(possible, key=lambda division: (division.slowest, division.cut_bytes))


def orders(graph: UnitGraph) -> list[tuple[int, ...]]:
    """Two topological orders of the units: the compiler's, and by the distance from the inputs."""
    depth: list[int] = []
    for needed in graph.before:
        depth.append(1 + max((depth[b] for b in needed), default=0))
    found = [tuple(range(len(depth))), tuple(sorted(range(len(depth)), key=lambda unit: (depth[unit], unit)))]
    return list(dict.fromkeys(found))


class _Line:
    """Units in an order, and the cost of every range of them: `[i, j]` is the range from point i to before point j."""

    def __init__(self, graph: UnitGraph, seconds: Seconds, link: float, order: Sequence[int]) -> None:
        size = -(-len(order) // MOST_POINTS)
        self.points = [tuple(order[at : at + size]) for at in range(0, len(order), size)]
        self.graph = graph
        self._link = link
        self._seconds = np.cumsum([0.0, *(sum(seconds[unit] for unit in point) for point in self.points)])
        self._measure()
        self._lives()
        count = len(self.points)
        self.entering = np.zeros((count, count + 1), np.int64)
        self.leaving = np.zeros((count, count + 1), np.int64)
        self._bytes = np.zeros((count, count + 1), np.int64)
        for start in range(count):
            self._stretch(start)

    def _lives(self) -> None:
        """For each value: the point that produces it (-1: an input), the last one that reads it, and the end of its
        lifetime (an output lives to the end)."""
        self._made: dict[int, int] = dict.fromkeys(self.graph.subgraph.inputs, -1)
        self._read: dict[int, int] = {}
        for at, point in enumerate(self.points):
            for unit in point:
                self._made.update(dict.fromkeys(self.graph.makes[unit], at))
                self._read.update(dict.fromkeys(self.graph.reads[unit], at))
        self._last = {**self._read, **dict.fromkeys(self.graph.subgraph.outputs, len(self.points))}

    def _stretch(self, start: int) -> None:
        """The bytes entering, leaving, and alive at the same time, for every range that begins at a point."""
        received: dict[int, int] = {}
        constants: dict[int, int] = {}
        own: dict[int, int] = {}
        inner = np.zeros(len(self.points), np.int64)  # bytes of values inside the range that are alive at each point
        for end in range(start + 1, len(self.points) + 1):
            at = end - 1
            for unit in self.points[at]:
                received |= {v: n for v, n in self._reads[unit].items() if self._made[v] < start}
                constants |= self._constants[unit]
                own |= self._makes[unit]
            inner[at] += max(self._inside[unit] for unit in self.points[at])
            for value in [v for v in own if self._last.get(v, at) <= at]:
                inner[self._made[value] : end] += rounded(own.pop(value))
            there = sum(received.values()) + sum(own.values()) + sum(constants.values())
            self._bytes[start, end] = there + inner[start:end].max()
            self.entering[start, end] = sum(n for v, n in received.items() if self._made[v] >= 0)
            self.leaving[start, end] = sum(n for v, n in own.items() if self._read.get(v, at) > at)

    def _measure(self) -> None:
        """The bytes of each unit's inputs, outputs and constants, and the sum of its internal tensors."""
        graph = self.graph.subgraph

        def sizes(values: Iterable[int]) -> dict[int, int]:
            return {value: type_bytes(graph.type(value)) for value in values}

        self._reads = [sizes(reads) for reads in self.graph.reads]
        self._makes = [sizes(makes) for makes in self.graph.makes]
        self._constants: list[dict[int, int]] = []
        self._inside: list[int] = []
        for operations, makes in zip(self.graph.units, self._makes, strict=True):
            used = {i for at in operations for i in graph.operations[at].used if graph.operands[i].is_constant}
            self._constants.append({id(graph.operands[i].data): type_bytes(graph.type(i)) for i in used})
            made = (o for at in operations for o in graph.operations[at].outputs if o not in makes)
            self._inside.append(sum(rounded(type_bytes(graph.type(o))) for o in made))

    def least(self, limit: int) -> int:
        """The fewest ranges of at most `limit` bytes that cover all points."""
        count = len(self.points)
        steps = [0] + [count + 1] * count
        for end in range(1, count + 1):
            fits = [steps[start] for start in range(end) if self._bytes[start, end] <= limit]
            steps[end] = 1 + min(fits, default=count)
        if steps[count] > count:
            largest = max(int(self._bytes[at, at + 1]) for at in range(count))
            raise PartitionError(
                f"the memory usage ({largest} bytes) of one partition exceeds the available memory ({limit} bytes) of "
                "a device, and it is not divided"
            )
        return steps[count]

    def divided(self, count: int, limit: int | None) -> Division | None:
        """The best division into `count` ranges; None if none fits."""
        points = len(self.points)
        if count > points:
            return None
        cost = self._seconds[None, :] - self._seconds[:-1, None] + (self.entering + self.leaving) / self._link
        if limit is not None:
            cost = np.where(self._bytes <= limit, cost, np.inf)
        slowest = _fewest(cost, count, np.maximum)[0]
        if not np.isfinite(slowest):
            return None
        passing = np.where(cost <= slowest * (1 + SLACK), self.entering.astype(float), np.inf)
        cut, ends = _fewest(passing, count, np.add)
        parts = tuple(
            tuple(unit for point in self.points[start:end] for unit in point)
            for start, end in zip((0, *ends), ends, strict=False)
        )
        worst = max(float(cost[start, end]) for start, end in zip((0, *ends), ends, strict=False))
        return Division(parts, worst, int(cut))


def _fewest(cost: Array, count: int, joined: np.ufunc) -> tuple[float, tuple[int, ...]]:
    """The least cost of `count` ranges, combined by sum or maximum, and the end of each range."""
    points = cost.shape[0]
    best = np.full((count + 1, points + 1), np.inf)
    choice = np.zeros((count + 1, points + 1), np.int64)
    best[0, 0] = 0.0
    for parts in range(1, count + 1):
        for end in range(parts, points + 1):
            through = joined(best[parts - 1, :end], cost[:end, end])
            choice[parts, end] = at = int(np.argmin(through))
            best[parts, end] = through[at]
    ends = [points]
    for parts in range(count, 1, -1):
        ends.append(int(choice[parts, ends[-1]]))
    return float(best[count, points]), tuple(reversed(ends))
