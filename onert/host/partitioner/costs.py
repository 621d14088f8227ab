"""The run times of units: estimated from a device's roofline, or measured."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import numpy as np

from onert.backend import Program, TensorInfo, Tensors
from onert.exec import Execution
from onert.exec.observers import Observer, Work
from onert.host.device_info import DeviceInfo
from onert.host.memory import type_bytes
from onert.ir import Array
from onert.ir.analysis.cost import cost

from .units import UnitGraph

Seconds = tuple[float, ...]
"""The seconds of each unit."""


def roofline(graph: UnitGraph, info: DeviceInfo) -> Seconds:
    """A lower bound of each unit's time: that of its arithmetic or of its memory traffic, whichever is longer.

    Tensors larger than the device's fast memory count as slow traffic. Tensors inside a unit cause no traffic
    (Williams, Waterman, Patterson 2009).
    """
    found = []
    for unit, operations in enumerate(graph.units):
        subgraph = graph.subgraph
        constants = {i for at in operations for i in subgraph.operations[at].used if subgraph.operands[i].is_constant}
        moved = [type_bytes(subgraph.type(i)) for i in (*constants, *graph.reads[unit], *graph.makes[unit])]
        slow = sum(nbytes for nbytes in moved if nbytes > info.sram_capacity)
        fast = sum(moved) - slow
        flops = sum(
            cost(subgraph.operations[at].op, subgraph.types(subgraph.operations[at])).flops for at in operations
        )
        found.append(max(flops / info.peak_compute, slow / info.peak_dram_bw, fast / info.peak_sram_bw))
    return tuple(found)


class _Timing(Observer):
    """Records the nanoseconds of each piece of work in the entry's routine."""

    def __init__(self, program: Program) -> None:
        self._main = program.main
        self.pieces: dict[tuple[int, ...], int] = {}

    def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
        if work.routine is self._main:
            self.pieces[work.operations] = self.pieces.get(work.operations, 0) + end - start


def measured(program: Program, graph: UnitGraph, rounds: int = 5) -> Seconds:
    """The time of each unit on this machine: the median of some runs on random inputs, after a warm-up run.

    The time of a piece that belongs to several units is split by the number of operations.
    """
    timing, rng = _Timing(program), np.random.default_rng(0)
    seconds: dict[tuple[int, ...], list[float]] = {}
    with Execution(program, observers=(timing,)) as execution:
        inputs = [numbers(info, rng) for info in program.inputs]
        for turn in range(rounds + 1):
            timing.pieces.clear()
            execution.run(inputs)
            if turn:
                for piece, taken in timing.pieces.items():
                    seconds.setdefault(piece, []).append(taken / 1e9)
    each: Mapping[int, float] = {at: median(times) / len(piece) for piece, times in seconds.items() for at in piece}
    return tuple(sum(each.get(at, 0.0) for at in operations) for operations in graph.units)


def numbers(info: TensorInfo, rng: np.random.Generator) -> Array:
    """Elements for an input: random floats; zeros for integers, which may be indices. Dynamic sizes are 1."""
    shape, dtype = tuple(d or 1 for d in info.shape), info.dtype.numpy
    if info.dtype.is_float:
        return rng.uniform(-1, 1, shape).astype(dtype)
    return np.full(shape, b"", object) if info.dtype.is_handle else np.zeros(shape, dtype)
