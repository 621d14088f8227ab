"""Dividing a line of units so that the slowest part is fast, little passes between parts, and each fits."""

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
"""Of a longer network, units are taken together until it has no more places to cut at."""
SLACK = 0.02
"""By how much the slowest part may be slower where less passes between parts then."""


@frozen
class Division(Value):
    """Units in parts: `parts[p]` are the units of part p, each part after those that it waits for.

    `slowest` is the seconds of the slowest part with what it sends and receives; `cut_bytes` is what passes between
    parts, counted once for each reader.
    """

    parts: tuple[tuple[int, ...], ...]
    slowest: float
    cut_bytes: int


def least_parts(graph: UnitGraph, seconds: Seconds, limit: int) -> int:
    """How few parts of at most `limit` bytes each a network divides into; PartitionError where a unit is too large."""
    return min(_Line(graph, seconds, 1.0, order).least(limit) for order in orders(graph))


def divide(graph: UnitGraph, seconds: Seconds, count: int, link: float, limit: int | None = None) -> Division:
    """The units in `count` parts: the slowest as fast as can be, and then as little as can be between them.

    `link` is the bytes a second that pass from one device to another, `limit` the bytes that a part may take. A part is
    a stretch of an order in which the network can run; of two such orders the one that is better for this is taken.
    PartitionError where there are too few units, or where no division fits.
    """
    if count > len(graph.units):
        raise PartitionError(
            f"{count} partitions are asked for, and there are too few groups of operations that are not divided: "
            f"{len(graph.units)}. Fusion groups are not, nor is a network of which sizes are open"
        )
    found = [_Line(graph, seconds, link, order).divided(count, limit) for order in orders(graph)]
    possible = [division for division in found if division is not None]
    if not possible:
        raise PartitionError(f"no division into {count} partitions has at most {limit} bytes in each")
    return min(possible, key=lambda division: (division.slowest, division.cut_bytes))


def orders(graph: UnitGraph) -> list[tuple[int, ...]]:
    """Orders in which the units can run: the compiler's, and by how far a unit is from the inputs."""
    depth: list[int] = []
    for needed in graph.before:
        depth.append(1 + max((depth[b] for b in needed), default=0))
    found = [tuple(range(len(depth))), tuple(sorted(range(len(depth)), key=lambda unit: (depth[unit], unit)))]
    return list(dict.fromkeys(found))


class _Line:
    """Units one after the other, and what every stretch of them costs: `[i, j]` is the points from i to before j."""

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
        """Of each value where it is made (-1: an input), where a unit reads it last, and until where it is there (an
        output: to the end)."""
        self._made: dict[int, int] = dict.fromkeys(self.graph.subgraph.inputs, -1)
        self._read: dict[int, int] = {}
        for at, point in enumerate(self.points):
            for unit in point:
                self._made.update(dict.fromkeys(self.graph.makes[unit], at))
                self._read.update(dict.fromkeys(self.graph.reads[unit], at))
        self._last = {**self._read, **dict.fromkeys(self.graph.subgraph.outputs, len(self.points))}

    def _stretch(self, start: int) -> None:
        """What comes in, goes out, and is there at a time, of every stretch that begins at a point."""
        received: dict[int, int] = {}
        constants: dict[int, int] = {}
        own: dict[int, int] = {}
        inner = np.zeros(len(self.points), np.int64)  # bytes of what a stretch hands on inside, at each point
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
        """The bytes of each unit's ends, of its constants, and of what passes inside, all of it at a time."""
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
        """How few stretches of at most so many bytes there are."""
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
        """The best division into so many stretches; None where none fits."""
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
    """The least cost of so many stretches, joined by a sum or a maximum, and where each ends."""
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
