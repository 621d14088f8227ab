"""`onert_bench`: measure onert and other runtimes side by side and report ratios."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, frozen
from rich.console import Console
from rich.table import Table
from rich.text import Text

import onert
from onert.backend.registry import load_backends
from onert.compiler.settings.config_keys import PRECISIONS
from onert.ir.value import Value

from .arguments import backend_names, shapes, wants_h5
from .contest import Contestant, contest
from .exits import UsageError, ended
from .inputs import random
from .model_report.times.machine import machine
from .open_shapes import InputShapes, compiled_with
from .options import add_threads, option
from .peers import PEERS, PeerError, Prepared


@frozen
class Row(Value):
    """A runtime's result for a model and a number of threads. `ratio` is how many times faster onert is."""

    model: str
    threads: int
    runtime: str
    milliseconds: float | None
    setup_milliseconds: float | None
    ratio: float | None
    note: str = ""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        prog="onert_bench", description="Measure onert and other runtimes in turn, and print ratios."
    )
    out.add_argument("--version", action="version", version=f"onert {onert.__version__}")
    option(out, "models MODEL", "model files or nnpackages", nargs="*", type=Path)
    option(out, "--machine", "measure this machine's peak rates instead of models")
    option(out, "--keep", "with --machine: store the result for the compiler to use")
    option(
        out,
        "--peers",
        "runtimes to compare with, comma-separated: litert, openvino, onnxruntime (default litert,openvino)",
        default="litert,openvino",
    )
    add_threads(out, default="1", metavar="N", help="comma-separated numbers of threads (default 1)")
    option(out, "--rounds", "rounds; in each, every runtime runs for about 20 ms (default 60)", type=int, default=60)
    option(out, "--seconds", "time limit for one model and number of threads (default 30)", type=float, default=30.0)
    option(out, "--seed", "seed of the random inputs (default 0)", type=int, default=0)
    option(out, "--backends", "onert's backends in order of preference, separated by ';'", default=None)
    option(out, "--precision", "how much rounding onert may do (default exact)", choices=PRECISIONS, default="exact")
    option(out, "--tune SECONDS", "let onert spend SECONDS measuring alternative kernels", type=float)
    option(out, "--shape_prepare S", "input shapes to compile for: [index, [dims], ...]")
    option(out, "--self-check", "measure onert against itself; the ratio should be 1.00")
    option(out, "--json", "print one JSON object instead of a table")
    return out


def prepare_onert(
    path: Path, threads: int, options: argparse.Namespace, known: dict[Path, InputShapes]
) -> tuple[Prepared, list[Any]]:
    """onert ready to run, and its random inputs. Shapes chosen for dynamic inputs are recorded in `known`."""
    chosen: dict[str, Any] = {"num_threads": threads, "precision": options.precision, "tune": options.tune}
    if options.backends is not None:
        chosen["backends"] = backend_names(options.backends)
    given = shapes(options.shape_prepare, "--shape_prepare")

    def compiled(taken: InputShapes) -> tuple[onert.Program, onert.Execution, float]:
        start = time.perf_counter()
        program = onert.compile(package, input_shapes=taken, **chosen)
        execution = onert.Execution(program)
        known[path] = taken
        return program, execution, time.perf_counter() - start

    start = time.perf_counter()
    package = onert.load(path, given)
    loading = time.perf_counter() - start
    taken = known.get(path)
    made = compiled_with(package, None, given, compiled) if taken is None else compiled(taken)
    program, execution, compiling = made
    setup = loading + compiling
    rng = np.random.default_rng(options.seed)
    inputs = [random(info, rng) for info in program.inputs]
    for position, array in enumerate(inputs):
        execution.set_input(position, array)
    execution.execute()
    return Prepared(
        execution.execute, lambda: [execution.get_output(i) for i in range(len(program.outputs))], setup
    ), inputs


def measure(path: Path, threads: int, options: argparse.Namespace) -> list[Row]:
    """Measure a model: onert's row first, then a row for each peer."""
    known: dict[Path, InputShapes] = {}
    mine, inputs = prepare_onert(path, threads, options, known)
    runs: list[tuple[str, Prepared]] = [("onert", mine)]
    missing: list[Row] = []
    if options.self_check:
        runs.append(("onert again", prepare_onert(path, threads, options, known)[0]))
    for name in filter(None, options.peers.split(",")):
        try:
            runs.append((name, PEERS[name](path, inputs, threads)))
        except PeerError as error:
            missing.append(Row(path.stem, threads, name, None, None, None, str(error)))
    results = contest(
        [Contestant(name, prepared.call) for name, prepared in runs], options.rounds, budget_seconds=options.seconds
    )
    return [
        Row(
            path.stem,
            threads,
            name,
            result.minimum * 1e3,
            prepared.setup_seconds * 1e3,
            None if name == "onert" else results[0].ratio(result),
        )
        for (name, prepared), result in zip(runs, results, strict=True)
    ] + missing


def geometric_mean(rows: Sequence[Row]) -> float | None:
    """Geometric mean, over models and thread counts, of the ratio to the fastest peer. None if there is no ratio."""
    fastest: dict[tuple[str, int], float] = {}
    for row in rows:
        if row.ratio is not None and row.runtime in PEERS:
            key = (row.model, row.threads)
            fastest[key] = min(fastest.get(key, math.inf), row.ratio)
    return math.exp(sum(map(math.log, fastest.values())) / len(fastest)) if fastest else None


def show(rows: Sequence[Row], console: Console) -> None:
    table = Table("model", "threads", "runtime")
    for heading in ("ms", "set-up ms", "speedup of onert"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            Text(row.model),
            str(row.threads),
            row.runtime,
            "-" if row.milliseconds is None else f"{row.milliseconds:.3f}",
            "-" if row.setup_milliseconds is None else f"{row.setup_milliseconds:.0f}",
            Text(row.note or ("" if row.ratio is None else f"{row.ratio:.2f} x")),  # Text does not parse markup
        )
    console.print(table)
    mean = geometric_mean(rows)
    if mean is not None:
        console.print(f"geometric mean against the fastest peer of each model: {mean:.2f} x")


def show_machine(measured: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print a machine's measured rates: a row for each rate, a column for each number of threads."""
    first = measured[0]
    levels = ", ".join(f"level {level}: {size >> 10} KiB" for level, size in first["caches"].items())
    console.print(Text(f"{first['processor']}, {first['processors']} processors; caches: {levels or 'unknown'}"))
    table = Table("peak")
    for each in measured:
        table.add_column("1 thread" if each["threads"] == 1 else f"{each['threads']} threads", justify="right")
    for kind in sorted({kind for each in measured for kind in each["flops_per_second"]}):
        found = [each["flops_per_second"].get(kind) for each in measured]
        table.add_row(f"{kind} products, G/s", *("-" if rate is None else f"{rate / 1e9:.0f}" for rate in found))
    copies = {"memory": "", "the shared cache": "outer_", "a core's own caches": "cached_"}
    for name, key in ((name, f"{beginning}bytes_per_second") for name, beginning in copies.items()):
        table.add_row(f"copies in {name}, GB/s", *(f"{each[key] / 1e9:.1f}" for each in measured))
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when a model failed, 2 for wrong usage."""
    called = {"num_threads": "--num_threads", "input_shapes": "--shape_prepare", "tune": "--tune"}
    return ended("onert_bench", partial(_run, parser().parse_args(arguments)), called=called)


def _run(options: argparse.Namespace) -> None:
    threads = _checked(options)
    if options.machine:
        measured = [machine(count) for count in threads]
        if options.keep:
            _keep(machine(1))
        if options.json:
            print(json.dumps({"machines": measured}))
        else:
            show_machine(measured, Console(width=None if sys.stdout.isatty() else 160))
        return
    rows: list[Row] = []
    for path in options.models:
        for count in threads:
            rows += measure(path, count, options)
            print(f"{path.stem}, {count} threads: done", file=sys.stderr)
    if options.json:
        print(json.dumps({"rows": [asdict(r) for r in rows], "geometric_mean": geometric_mean(rows)}))
    else:
        show(rows, Console(width=None if sys.stdout.isatty() else 160))


def _keep(measured: Mapping[str, Any]) -> None:
    """Calibrate the backends with one thread's rates. Raises UsageError if a rate is missing or cannot be stored."""
    figures = {**measured["flops_per_second"], "outer": measured["outer_bytes_per_second"]}
    if not {"float32", "int8"} <= figures.keys():
        raise UsageError("--keep needs peak rates of float32 and int8, which could not be measured on this machine")
    try:
        found = [backend.name for backend in load_backends() if backend.calibrate(figures)]
    except OSError as error:
        raise UsageError(f"--keep cannot write to the cache: {error}") from error
    print(f"stored for {', '.join(found) or 'no backend'}", file=sys.stderr)


def _checked(options: argparse.Namespace) -> list[int]:
    """Validate the options and return the numbers of threads. Raises UsageError for arguments out of range."""
    unknown = [p for p in options.peers.split(",") if p and p not in PEERS]
    if unknown:
        raise UsageError(f"--peers has {', '.join(map(repr, unknown))}, expected some of {', '.join(PEERS)}")
    if options.machine and options.models:
        raise UsageError("--machine and MODEL are both given, expected one")
    if options.keep and not options.machine:
        raise UsageError("--keep is given without --machine")
    if not (options.machine or options.models):
        raise UsageError("the following arguments are required: MODEL, or --machine")
    for name, low in (("rounds", 1), ("seed", 0)):
        if getattr(options, name) < low:
            raise UsageError(f"--{name} is {getattr(options, name)}, expected at least {low}")
    if not 0 < options.seconds < math.inf:
        raise UsageError(f"--seconds is {options.seconds}, expected more than 0")
    backend_names(options.backends)
    if wants_h5(options.shape_prepare):
        raise UsageError("--shape_prepare is h5, expected [index, [dims], ...]")
    shapes(options.shape_prepare, "--shape_prepare")
    words = options.num_threads.split(",")
    if not all(word.isdecimal() and len(word) < 10 and int(word) for word in words):
        raise UsageError(f"--num_threads is {options.num_threads!r}, expected comma-separated numbers of at least 1")
    return [int(word) for word in words]


if __name__ == "__main__":
    sys.exit(main())
