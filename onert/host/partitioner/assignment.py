"""Assign a network's operations to backends, and form regions of the same backend."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from onert.backend import Backend
from onert.compiler.scheduler.manual import why_not
from onert.compiler.scheduler.operation_names import kinds
from onert.host.device_info import DeviceInfo
from onert.host.errors import PartitionError
from onert.ir import CallTypes, Operation
from onert.ir.analysis.ordering import in_order

from .units import UnitGraph


def takes(info: DeviceInfo, operation: Operation) -> bool:
    """Whether a device's configuration allows an operation's kind, regardless of what its backend supports."""
    names = kinds(operation)
    if info.non_supported_nodes.intersection(names):
        return False
    return not info.supported_nodes or bool(info.supported_nodes.intersection(names))


class Kind:
    """The devices with one backend, as the partitioner sees them, and the backends that compile for them."""

    def __init__(self, name: str, infos: Sequence[DeviceInfo], backends: Sequence[Backend]) -> None:
        self.name = name
        self.infos = tuple(infos)
        self.backends = tuple(backends)
        """The devices' own backend, followed by its fallbacks."""

    @property
    def info(self) -> DeviceInfo:
        """The first device, which represents all of them."""
        return self.infos[0]

    def room(self, count: int) -> int:
        """The bytes that each of `count` partitions may use: the free memory of the smallest device that they need."""
        free = sorted((info.available_memory for info in self.infos), reverse=True)
        return free[min(count, len(free)) - 1]

    def refusal(self, operation: Operation, types: CallTypes, *, behind: bool) -> str | None:
        """Why the kind does not run an operation, None if it does. With `behind`, fallback backends count too."""
        if not all(takes(info, operation) for info in self.infos):
            return f"{self.name}: the configuration of its devices excludes {operation.op.label}"
        reasons = []
        for backend in self.backends if behind else self.backends[:1]:
            reason = why_not(backend, operation, types)
            if reason is None:
                return None
            reasons.append(f"{backend.name}: {reason}")
        return "; ".join(reasons)


def assigned(name: str, graph: UnitGraph, choices: Sequence[Kind]) -> list[int]:
    """For each unit, the first kind whose own backend runs all of it, otherwise the first that can with fallbacks.
    Raises PartitionError with every operation that no kind can run."""
    subgraph = graph.subgraph
    found: list[int] = []
    missing: list[str] = []
    for operations in graph.units:
        calls = [(subgraph.operations[at], subgraph.types(subgraph.operations[at])) for at in operations]
        for behind in (False, True):
            able = [
                at
                for at, kind in enumerate(choices)
                if all(kind.refusal(operation, types, behind=behind) is None for operation, types in calls)
            ]
            if able:
                found.append(able[0])
                break
        else:
            missing += [_reasons(operation, types, choices) for operation, types in calls]
    if missing:
        raise PartitionError(
            f"network {name!r}: {len(missing)} operations are not supported by any of the provided backends: "
            + "; ".join(filter(None, missing))
        )
    return found


def _reasons(operation: Operation, types: CallTypes, choices: Sequence[Kind]) -> str:
    reasons = [kind.refusal(operation, types, behind=True) for kind in choices]
    return f"{operation} ({', '.join(r for r in reasons if r is not None)})"


def regions(graph: UnitGraph, kinds_of: Sequence[int]) -> list[tuple[int, tuple[int, ...]]]:
    """Regions of consecutive units of the same kind, in an order with few changes, each with its kind."""
    order = in_order(graph.before, kinds=kinds_of)
    return [(kind, tuple(region)) for kind, region in groupby(order, lambda unit: kinds_of[unit])]
