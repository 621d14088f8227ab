"""Estimates how long a subgraph takes with a given assignment of backends, by measured times."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from attrs import frozen

from onert.backend import HOST, Backend
from onert.ir import Subgraph
from onert.ir.value import Value

from .exec_time import ExecTimes

BYTES_PER_MICROSECOND = 400
"""The assumed speed of a copy that was not measured: ONE's guess."""

Times = Sequence[dict[str, float]]
"""For each operation, its microseconds on each possible backend."""


@frozen
class Transfers(Value):
    """The cost of passing a tensor to another backend: nothing if both use the same memory."""

    subgraph: Subgraph
    known: ExecTimes
    host: Backend

    def time(self, operand: int, source: Backend, target: Backend) -> float:
        type_ = self.subgraph.type(operand)
        if source.memory.name == target.memory.name or not type_.is_static:
            return 0.0
        found = self.known.transfer(source.name, target.name, type_)
        if found is None and HOST.name not in (source.memory.name, target.memory.name):
            # Copied through the host, as the permute does.
            out = self.known.transfer(source.name, self.host.name, type_)
            back = self.known.transfer(self.host.name, target.name, type_)
            found = None if out is None or back is None else out + back
        return found if found is not None else 2 * type_.nbytes / BYTES_PER_MICROSECOND


def total(subgraph: Subgraph, chosen: Sequence[Backend], times: Times, transfers: Transfers, workers: int) -> float:
    """Microseconds of a run: one operation after the other, or with several `workers` as soon as operands are ready.

    Copies occupy a worker too. Each tensor is copied once to each memory space that reads it; inputs come from the
    host, and outputs go there.
    """
    ready_at: dict[tuple[int, str], float] = {(i, transfers.host.memory.name): 0.0 for i in subgraph.inputs}
    owner: dict[int, Backend] = dict.fromkeys(subgraph.inputs, transfers.host)
    free = [0.0] * workers
    end = 0.0

    def spend(ready: float, time: float) -> float:
        done = max(ready, heappop(free)) + time
        heappush(free, done)
        return done

    def arrival(operand: int, target: Backend) -> float:
        key = (operand, target.memory.name)
        if operand not in owner:
            return 0.0  # a constant or a variable
        if key not in ready_at:
            source = owner[operand]
            ready_at[key] = spend(ready_at[operand, source.memory.name], transfers.time(operand, source, target))
        return ready_at[key]

    for operation, backend, known in zip(subgraph.operations, chosen, times, strict=True):
        ready = max((arrival(i, backend) for i in operation.used), default=0.0)
        done = spend(ready, known[backend.name])
        for operand in operation.outputs:
            owner[operand] = backend
            ready_at[operand, backend.memory.name] = done
        end = max(end, done)
    return max([end, *(arrival(o, transfers.host) for o in subgraph.outputs)])
