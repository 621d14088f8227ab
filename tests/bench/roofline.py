"""How near whole models come to one core's roofline: `python tests/bench/roofline.py [--rounds N] MODEL...`

A model's bound is the sum over its fused groups of the larger of two times: the group's arithmetic at peak throughput,
and its memory traffic at full bandwidth. The peak, for floats or int8, is measured by a loop in registers alone
(`kernels.py`). The bandwidth is measured by copying as many bytes as the model's constants and arena have together, so
it is that of the caches they fit into. All of these are measured in each round beside the model, so that changing clock
rates do not matter; the share is the median over the rounds. A group's operations are those counted by `Op.flops`, so a
Winograd convolution can exceed 100 %.

Source of the roofline: S. Williams, A. Waterman, D. Patterson, Roofline: An Insightful Visual Performance Model for
Multicore Architectures, CACM 52(4), 2009.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.kernels import CHAINS, Peak, Runner
from bench.stopwatch import fastest

import onert
from onert.backend import Group, Routine
from onert.compiler.side_by_side.durations import traffic
from onert.tools.model_report.times.estimate import arithmetic, is_stored
from onert_llvm.target.isa import target

TRIPS = 20_000
ROUND = 0.02
"""Seconds per measurement in a round."""
LINE = 1 << 12
"""The smallest number of bytes copied to measure a bandwidth."""


@frozen
class Need:
    """What a group of operations needs: arithmetic operations, whether they are on int8, and bytes read and written."""

    operations: int
    stored: bool
    nbytes: int


@frozen
class Found:
    """A model's row: milliseconds, the share of its bound, and the part of the bound due to arithmetic."""

    name: str
    milliseconds: float
    share: float
    arithmetic: float


def needs(routine: Routine) -> list[Need]:
    """The needs of each fused group, except those that only reinterpret memory."""
    graph = routine.subgraph

    def alive(group: Group) -> bool:
        return not all(graph.operations[at].op.shares for at in group.operations)

    groups = [group for step in routine.steps for group in step.sequence.groups if alive(group)]
    return [Need(arithmetic(graph, group), is_stored(graph, group), traffic(graph, group)) for group in groups]


def working_set(routine: Routine) -> int:
    """The bytes of constants and arenas."""
    constants = sum(o.data.array.nbytes for o in routine.subgraph.operands if o.data is not None)
    return constants + sum(plan.size for plan in routine.arenas.values())


class Machine:
    """One core's rates, measured each time they are requested."""

    def __init__(self) -> None:
        isa = target("native")
        self._runner = Runner(isa, False)
        self._peaks: dict[bool, tuple[Callable[[], None], int]] = {}
        for integer in (False, True):
            start = np.full(CHAINS * isa.f32 + 16, 0.5, np.float32)
            start = start[-start.ctypes.data % 64 // 4 :][: CHAINS * isa.f32]
            peak = Peak(integer)
            self._peaks[integer] = (
                self._runner.bind(peak, TRIPS, {"out": start}),
                peak.operations(isa) * TRIPS,
            )

    def operations_per_second(self, integer: bool) -> float:
        call, work = self._peaks[integer]
        return work / fastest(call, 5)

    @staticmethod
    def bytes_per_second(nbytes: int) -> float:
        """The bytes read and written per second when copying between arrays of `nbytes` together."""
        source, copy = (np.ones(max(nbytes, LINE) // 2, np.uint8) for _ in range(2))
        again = max(1, (1 << 22) // len(source))

        def copies() -> None:
            for _ in range(again):
                np.copyto(copy, source)

        copies()
        return 2 * len(source) * again / fastest(copies, 4)


def row(path: Path, machine: Machine, rounds: int) -> Found:
    """Measure a model and the machine alternately."""
    program = onert.compile(onert.load(path), num_threads=1)
    execution = onert.Execution(program)
    rng = np.random.default_rng(0)
    for number, given in enumerate(program.inputs):
        shape = [d or 1 for d in given.shape]
        execution.set_input(number, rng.integers(0, 2, shape).astype(given.dtype.numpy))
    execution.execute()
    wanted, size = needs(program.main), working_set(program.main)
    repeat = max(3, int(ROUND / max(fastest(execution.execute, 3), 1e-7)))
    taken, shares, parts = [], [], []
    for _ in range(rounds):
        own = fastest(execution.execute, repeat)
        rates = {integer: machine.operations_per_second(integer) for integer in (False, True)}
        moving = machine.bytes_per_second(size)
        computing = [each.operations / rates[each.stored] for each in wanted]
        bounds = [max(time, each.nbytes / moving) for time, each in zip(computing, wanted, strict=True)]
        taken.append(own)
        shares.append(sum(bounds) / own)
        parts.append(sum(t for t, b in zip(computing, bounds, strict=True) if t == b) / sum(bounds))
    return Found(path.stem, median(taken) * 1e3, median(shares), median(parts))


def table(found: list[Found]) -> Iterator[str]:
    yield "| model | ms | of the roofline | arithmetic in the bound |"
    yield "|---|---:|---:|---:|"
    for each in found:
        yield f"| {each.name} | {each.milliseconds:.3f} | {each.share:.0%} | {each.arithmetic:.0%} |"
    yield f"\nmedian {median(each.share for each in found):.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    chosen = parser.parse_args()
    machine = Machine()
    print(*table([row(path, machine, chosen.rounds) for path in chosen.models]), sep="\n")


if __name__ == "__main__":
    main()
