"""Times and memory of the phases of a run."""

from __future__ import annotations

import csv
import io
import math
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field

from onert.ir.process.replacing import replace

PHASES = {"MODEL_LOAD": "MODEL_LOAD", "COMPILE": "PREPARE", "EXECUTE": "EXECUTE"}
"""The phases of a run, and their names in ONE's tables."""


@define
class Measurements:
    """Milliseconds of loading, compiling and each measured run; KiB of memory after each phase.

    `batch` is the number of items per run.
    """

    milliseconds: dict[str, float] = field(factory=dict)
    runs: list[float] = field(factory=list)
    batch: int = 1
    memory: dict[str, dict[str, int]] = field(factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.milliseconds[name] = (time.perf_counter() - start) * 1e3
        self.memory[name] = memory_kib()

    @property
    def statistics(self) -> dict[str, float | int]:
        """Mean, max, min, geometric mean and percentiles over the runs, in milliseconds, and items per second."""
        geometric = math.exp(sum(math.log(max(t, 1e-9)) for t in self.runs) / len(self.runs))
        return {
            "mean": sum(self.runs) / len(self.runs),
            "max": max(self.runs),
            "min": min(self.runs),
            "geomean": geometric,
            "median": percentile(self.runs, 50),
            "p90": percentile(self.runs, 90),
            "p99": percentile(self.runs, 99),
            "per_second": self.batch * len(self.runs) / max(sum(self.runs), 1e-9) * 1e3,
            "runs": len(self.runs),
        }


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which `part` percent of the values lie, linearly interpolated."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * part / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def memory_kib() -> dict[str, int]:
    """Current (`rss`) and peak (`hwm`) resident memory in KiB; only the peak if there is no /proc."""
    found = {"hwm": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            key, _, value = line.partition(":")
            if key in ("VmRSS", "VmHWM"):
                found[key[2:].lower()] = int(value.split()[0])
    return found


def phase_lines(measured: Measurements, *, memory: bool) -> Iterator[str]:
    """The block that ONE's tools print, followed by percentiles if there were several runs."""
    yield "==================================="
    for phase in ("MODEL_LOAD", "COMPILE"):
        yield f"{PHASES[phase]:<12} takes {measured.milliseconds[phase]:.3f} ms"
    statistics = measured.statistics
    yield f"{'EXECUTE':<12} takes {sum(measured.runs):.3f} ms"
    for key in ("mean", "max", "min", "geomean"):
        yield f"- {key.upper():<8}:  {statistics[key]:.3f} ms"
    yield "==================================="
    if len(measured.runs) > 1:
        times = ", ".join(f"{key} {statistics[key]:.3f} ms" for key in ("median", "p90", "p99"))
        yield f"{times}, {statistics['per_second']:.1f} per second"
    if memory:
        for phase, name in PHASES.items():
            yield f"{name:<12} " + "  ".join(f"{k.upper()} {v} kb" for k, v in sorted(measured.memory[phase].items()))
        yield f"{'PEAK':<12} {max(m['hwm'] for m in measured.memory.values())} kb"
        yield "==================================="


def write_report(path: Path, measured: Measurements, names: Sequence[str]) -> None:
    """Write the figures as CSV: a header and one row."""
    statistics = measured.statistics
    row: dict[str, object] = {
        **dict(zip(("exec", "model", "backend"), names, strict=True)),
        **{PHASES[phase]: f"{measured.milliseconds[phase]:.3f}" for phase in ("MODEL_LOAD", "COMPILE")},
        **{key.upper(): f"{statistics[key]:.3f}" for key in ("mean", "max", "min", "geomean")},
        **{
            f"{name}_{k.upper()}_KB": v
            for phase, name in PHASES.items()
            for k, v in sorted(measured.memory[phase].items())
        },
    }
    lines = io.StringIO(newline="")
    writer = csv.DictWriter(lines, list(row))
    writer.writeheader()
    writer.writerow(row)
    replace(path, (lines.getvalue().encode(),))
