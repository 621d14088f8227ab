"""`onert_host`: plan hosts.

`onert_host simulate PLAN` predicts how devices would handle requests; `onert_host measure PLAN` measures runs here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from attrs import asdict
from rich.console import Console
from rich.table import Table

from onert import __version__
from onert.host.simulation.calibration import write
from onert.host.simulation.model import Outcome
from onert.host.simulation.plan import load_plan
from onert.host.simulation.run import fewest_devices, measure, run

from .exits import ended
from .options import option


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when the plan cannot be read or carried out, 2 for wrong usage."""
    options = parser().parse_args(arguments)
    return ended("onert_host", partial({"simulate": _simulate, "measure": _measure}[options.command], options))


def _measure(options: argparse.Namespace) -> None:
    found = measure(load_plan(options.plan), options.seconds)
    write(options.out, found)
    for name, kept in found.items():
        for part, seconds in kept.seconds.items():
            p50, p99 = (float(each) * 1e3 for each in np.percentile(seconds, [50, 99]))
            print(
                f"{name}: {len(seconds)} runs of {part} occupied a device for {p50:.3f} ms (median), p99 {p99:.3f} ms"
            )


def _simulate(options: argparse.Namespace) -> None:
    plan = load_plan(options.plan)
    devices = len(plan.devices)
    if options.p99 is None:
        found = run(plan)
    else:
        devices, best = fewest_devices(plan, options.p99 / 1000)
        found = [best]
    if options.json:
        print(json.dumps({"devices": devices, "networks": [{**asdict(o), "bottleneck": o.bottleneck} for o in found]}))
        return
    if options.p99 is not None:
        print(f"{devices} devices meet a p99 of {options.p99:g} ms")
    Console(width=140).print(_table(found))
    for each in found:
        used = ", ".join(f"{name} {share:.0%}" for name, share in each.utilisation.items())
        print(f"{each.name}: devices are busy {used}; the bottleneck is {each.bottleneck}")
        if each.urgent_p99:
            urgent = ", ".join(f"{priority}: {seconds * 1e3:.3f} ms" for priority, seconds in each.urgent_p99.items())
            print(f"{each.name}: p99 by priority {urgent}")


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table("network", "answered", "refused", "late", "per second", "p50 ms", "p90 ms", "p99 ms", "max ms")
    for each in outcomes:
        times = (each.latency_p50, each.latency_p90, each.latency_p99, each.latency_max)
        table.add_row(
            each.name,
            str(each.answered),
            str(each.refused),
            str(each.late),
            f"{each.throughput:.1f}",
            *(f"{seconds * 1e3:.3f}" for seconds in times),
        )
    return table


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="onert_host", description="Plan how many devices a set of models needs.")
    out.add_argument("--version", action="version", version=f"onert {__version__}")
    commands = out.add_subparsers(dest="command", required=True)
    simulate = commands.add_parser(
        "simulate",
        help="predict how devices would handle requests",
        description="Predict how the devices of a plan would handle its requests.",
    )
    option(simulate, "plan PLAN", "a TOML file of devices, networks and requests", type=Path)
    option(simulate, "--p99 MS", "find the fewest devices that meet this p99 latency", type=float)
    option(simulate, "--json", "print JSON")
    measuring = commands.add_parser(
        "measure",
        help="measure how long networks run on this machine's devices",
        description="Measure how long runs of a plan's networks take on this machine's devices, for simulations.",
    )
    option(measuring, "plan PLAN", "a plan whose devices are those of this machine", type=Path)
    option(measuring, "--out FILE", "the JSON file to write the times to", type=Path, required=True)
    option(measuring, "--seconds", "how long to measure each network (default 10)", type=float, default=10.0)
    return out
