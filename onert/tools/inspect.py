"""`onert_inspect`: a model as text, its operations, the plan of its memory."""

from __future__ import annotations

import argparse
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
from onert.compiler.report import tables
from onert.compiler.report.memory_plan_svg import plan_svg
from onert.ir import ExecutionError, Package
from onert.ir.text import text

from .arguments import CALLED, backend_names, require_suffix
from .exits import UsageError, ended


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="onert_inspect", description="Print what is in a model.")
    out.add_argument("--version", action="version", version=f"onert {onert.__version__}")
    out.add_argument("model", metavar="MODEL", help=".tflite, .circle, or an nnpackage (directory or zip)")
    out.add_argument("--ops", action="store_true", help="the operations: what runs where, with types")
    out.add_argument("--plan", action="store_true", help="the memory plan: where each tensor lies")
    out.add_argument("--svg", type=Path, metavar="FILE", help="draw the memory plan: tensors over time and offset")
    out.add_argument("--executor", metavar="NAME", help="Linear, Dataflow or Parallel")
    out.add_argument("--signature", metavar="KEY", help="the signature to compile for --ops and --plan")
    out.add_argument("--backends", metavar="A;B", help="backends by preference")
    out.add_argument("-v", "--verbose_level", type=int, default=0, metavar="N", help="2: tracebacks")
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when the model failed, 2 for wrong usage."""
    options = parser().parse_args(arguments)
    return ended("onert_inspect", partial(_run, options), tracebacks=options.verbose_level >= 2, called=CALLED)


def _run(options: argparse.Namespace) -> None:
    compiles = options.ops or options.plan or options.svg is not None
    for name in ("executor", "signature", "backends"):
        if getattr(options, name) is not None and not compiles:
            raise UsageError(f"--{name} is given without --ops, --plan or --svg")
    require_suffix(options.svg, "--svg", (".svg",))
    backend_names(options.backends)
    package = frontend.load(Path(options.model))  # and not the compiler
    for note in package.notes:
        print(f"onert_inspect: note: {note}", file=sys.stderr)
    if compiles:
        _tables(options, package)
    else:
        for model in package.models:
            print(text(model, constants=False), end="")


def _tables(options: argparse.Namespace, package: Package) -> None:
    chosen: dict[str, Any] = {"signature": options.signature}
    if options.backends is not None:
        chosen["backends"] = backend_names(options.backends)
    if options.executor is not None:
        chosen["executor"] = options.executor
    program = onert.compile(package, **chosen)
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
    """A picture of the memory plan; with several memory spaces a file for each, named after it."""
    for name, plan in program.memory_plan.items():
        target = path if len(program.memory_plan) == 1 else path.with_stem(f"{path.stem}.{name}")
        try:
            target.write_text(plan_svg(program.main, plan, f"{program.name or 'model'}, {name}"), encoding="utf-8")
        except OSError as error:
            raise ExecutionError(f"{target} cannot be written: {error.strerror or error}") from error


def _print(console: Console, table: tables.Table) -> None:
    """For a terminal in columns that fit it, for a file in columns as wide as they are."""
    if not console.is_terminal:
        print(table)
        return
    shown = Table(*table.headings, box=None, pad_edge=False)
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown, markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
