"""`onert_inspect`: describe a model, where its operations run and how long they take, as text or as a page."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import onert
from onert import frontend
from onert.backend import Program
from onert.compiler import Options
from onert.compiler.report import tables
from onert.compiler.report.memory_plan_svg import plan_svg
from onert.ir import CompileError, ExecutionError, Package
from onert.ir.process import imports
from onert.ir.process.replacing import replace
from onert.ir.text import text

from .arguments import CALLED, backend_names, require_suffix, shapes, wants_h5
from .exits import UsageError, ended
from .options import add_threads, option

CHOICES = ("executor", "num_threads", "signature", "backends")
MOST_PORTS = 1 << 16


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="onert_inspect", description="Describe a model and how it runs on this machine.")
    out.add_argument("--version", action="version", version=f"onert {onert.__version__}")
    option(out, "model MODEL", "a model file, or an nnpackage (directory or zip)")
    option(out, "--random-weights SEED", "give a TNN structure random weights, the same for the same seed", type=int)
    option(out, "--text", "print the model as text, operation by operation, and nothing else")
    option(out, "--ops", "list the operations with their backends and types")
    option(out, "--plan", "list the memory plan: offset and lifetime of each tensor")
    option(out, "--svg FILE", "draw the memory plan: tensors by time and offset", type=Path)
    page = out.add_argument_group("report")
    option(page, "--profile", "run the model on random inputs and time each operation")
    option(page, "--html FILE", "write the report as a page: graph, passes, memory, time, roofline", type=Path)
    option(
        page,
        "--compare OTHER",
        "compare with another model, or with other options: executor=Parallel,backends=builtin;llvm",
    )
    option(page, "--serve PORT", "serve the page on the loopback address", nargs="?", type=int, const=0)
    option(page, "--json", "print the report as one JSON object and nothing else")
    compiling = out.add_argument_group("compiler")
    option(compiling, "--executor NAME", "Linear, Dataflow or Parallel")
    add_threads(compiling, type=int, metavar="N", help="threads (default: all this process may use)")
    option(compiling, "--shape_prepare S", "input shapes to compile for: [index, [dims], ...]")
    option(compiling, "--signature KEY", "the signature to compile for")
    option(compiling, "--backends A;B", "backends in order of preference")
    option(out, "-v --verbose_level N", "2: tracebacks", type=int, default=0)
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when the model failed, 2 for wrong usage."""
    options = parser().parse_args(arguments)
    return ended("onert_inspect", partial(_run, options), tracebacks=options.verbose_level >= 2, called=CALLED)


def _run(options: argparse.Namespace) -> None:
    _check(options)
    path = Path(options.model)
    package = _loaded(options, path)
    for note in package.notes:
        print(f"onert_inspect: note: {note}", file=sys.stderr)
    if options.text:
        for model in package.models:
            print(text(model, constants=False), end="")
    elif options.ops or options.plan or options.svg is not None:
        _tables(options, package)
    else:
        _report(options, path, package)


def _loaded(options: argparse.Namespace, path: Path) -> Package:
    """The model. With --random-weights, a TNN structure with random weights."""
    if options.random_weights is None:
        return frontend.load(path, input_shapes=_choices(options).get("input_shapes"))
    found: Package = imports.module("onert.frontend.tnn").load(path, random_weights=options.random_weights)
    return found


def _check(options: argparse.Namespace) -> None:
    """Raises UsageError for invalid values and for options that exclude one another."""
    require_suffix(options.svg, "--svg", (".svg",))
    require_suffix(options.html, "--html", (".html", ".htm"))
    backend_names(options.backends)
    if wants_h5(options.shape_prepare):
        raise UsageError("--shape_prepare is h5, expected [index, [dims], ...]")
    if options.num_threads is not None and options.num_threads < 1:
        raise UsageError(f"--num_threads is {options.num_threads}, expected at least 1")
    if options.serve is not None and not 0 <= options.serve < MOST_PORTS:
        raise UsageError(f"--serve is {options.serve}, expected a port from 0 to {MOST_PORTS - 1}")
    tables_ = [name for name in ("ops", "plan", "svg") if getattr(options, name)]
    pages = [n for n in ("profile", "html", "compare", "json") if getattr(options, n)]
    pages += ["serve"] if options.serve is not None else []
    chosen = [name for name in (*CHOICES, "shape_prepare") if getattr(options, name) is not None]
    for one, others in (("text", (*tables_, *pages, *chosen)), *((name, pages) for name in tables_)):
        if getattr(options, one) and others:
            raise UsageError(f"--{one} and --{others[0]} are both given, expected one")
    for one, other in (("json", "html"), ("json", "serve"), ("html", "serve")):
        if getattr(options, one) and getattr(options, other) is not None:
            raise UsageError(f"--{one} and --{other} are both given, expected one")


def _choices(options: argparse.Namespace) -> dict[str, Any]:
    """The compiler options given on the command line."""
    found = {name: getattr(options, name) for name in CHOICES if getattr(options, name) is not None}
    if options.backends is not None:
        found["backends"] = backend_names(options.backends)
    if options.shape_prepare is not None:
        found["input_shapes"] = shapes(options.shape_prepare, "--shape_prepare")
    return found


# ---- the report


def _report(options: argparse.Namespace, path: Path, package: Package) -> None:
    """Print, write or serve the report. Its modules are imported only here."""
    chosen = Options.from_environment(os.environ, **_choices(options))
    room = "onert.tools.model_report"
    compare = imports.module(f"{room}.compare")
    sides = [compare.Side(path, package, chosen)]
    if options.compare is not None:
        sides.append(compare.other(options.compare, sides[0]))
    if options.serve is not None:
        imports.module(f"{room}.live").serve(sides, port=options.serve, profile=options.profile)
        return
    reports = compare.reports(sides, profile=options.profile, graphs=options.html is not None or options.json)
    _print_report(options, reports, room)
    for report in reports:
        if report["error"]:  # after printing what is known about the model
            raise CompileError(report["error"])


def _print_report(options: argparse.Namespace, reports: list[dict[str, Any]], room: str) -> None:
    """Print the reports as JSON, or as lines of text; with --html also write the page."""
    if options.json:
        print(json.dumps(reports[0] if len(reports) == 1 else reports, allow_nan=False))
        return
    summary, words = imports.module(f"{room}.summary"), imports.module(f"{room}.words")
    lines = summary.summary_lines(reports[0]) if len(reports) == 1 else summary.side_by_side(reports)
    if options.html is not None:
        page: str = imports.module(f"{room}.document").document(reports)
        _write(options.html, page)
        lines.append(f"{summary.labelled('page')} {options.html}, {words.nbytes(len(page.encode()))}")
    print("\n".join(lines))


def _write(path: Path, words: str) -> None:
    try:
        replace(path, (words.encode(),))
    except OSError as error:
        raise ExecutionError(f"{path} cannot be written: {error.strerror or error}") from error


# ---- tables


def _tables(options: argparse.Namespace, package: Package) -> None:
    chosen = _choices(options)
    given = chosen.pop("input_shapes", {})
    program: Program = imports.module("onert.tools.open_shapes").compiled_with(
        package,
        options.signature,
        given,
        lambda taken: onert.compile(package, **{**chosen, "input_shapes": taken}),
    )
    console = Console()
    if options.ops:
        _print(console, tables.operations_table(program.main))
    if options.plan:
        for plan in program.memory_plan.values():
            _print(console, tables.plan_table(program.main.subgraph, plan))
        for line in tables.memory_lines(program):
            print(line)
    if options.svg is not None:
        _draw(options.svg, program)


def _draw(path: Path, program: Program) -> None:
    """Draw the memory plan. If there are several memory spaces, each gets a file named after it."""
    for name, plan in program.memory_plan.items():
        target = path if len(program.memory_plan) == 1 else path.with_stem(f"{path.stem}.{name}")
        _write(target, plan_svg(program.main, plan, f"{program.name or 'model'}, {name}"))


def _print(console: Console, table: tables.Table) -> None:
    """Print a table, with columns fitted to the width if the output is a terminal."""
    if not console.is_terminal:
        print(table)
        return
    shown = Table(*table.headings, box=None, pad_edge=False)
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown, markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
