"""A report of one model as plain data, documented in docs/report_data.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import fields

import onert
from onert.backend import Program
from onert.compiler import Options
from onert.compiler.side_by_side.durations import traffic
from onert.frontend import formats
from onert.frontend.format import HEAD
from onert.frontend.metadata import ModelMetadata, label_files, metadata
from onert.ir import Package

from .arenas import arenas
from .compiling import Compiled, compiled, names
from .facts import facts
from .places import places
from .pools import Graphs
from .times.estimate import arithmetic, expected, is_stored
from .times.machine import machine
from .times.running import measured
from .weights import constants

VERSION = 1
"""Version of the data. It increases when a field changes its meaning."""
SHOWN_LABELS = 1_000


def report(path: Path, package: Package, options: Options, *, profile: bool, graphs: bool = True) -> dict[str, Any]:
    """The report of a package loaded from `path` and compiled with these options.

    `graphs` adds every stage of every subgraph, memory plans and constants; `profile` runs the program. Raises
    BackendError if none of the named backends can be loaded.
    """
    found = compiled(package, options)
    peaks = machine(found.options.num_threads)
    told: dict[str, Any] = {
        "version": VERSION,
        "onert": onert.__version__,
        "model": _model(path, package),
        "options": _options(found.options),
        "backends": names(found.backends),
        "entry": found.entry,
        "error": found.error or None,
        "open_shapes": found.taken.said or found.taken.refused or None,
        "facts": facts(found),
        "machine": peaks,
        "estimate": None if found.program is None else _estimate(found, found.program, peaks),
        "profile": measured(found.program) if profile and found.program is not None else None,
    }
    return {**told, **_graphs(found)} if graphs else told


def _model(path: Path, package: Package) -> dict[str, Any]:
    models, said = package.models, metadata(package)
    return {
        "name": package.name,
        "file": path.name,
        "bytes": sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) if path.is_dir() else _size(path),
        "format": _format(path),
        "models": len(models),
        "subgraphs": sum(len(model.subgraphs) for model in models),
        "description": " ".join(model.description for model in models if model.description),
        "notes": [*package.notes, *said.notes],
        "labels": _labels(path, said),
        "task": said.task,
        "image_size": None if said.image_size is None else list(said.image_size),
    }


def _labels(path: Path, said: ModelMetadata) -> list[dict[str, Any]]:
    """The source of labels, their number, and the first of them."""
    found = label_files(path) | ({"the metadata": said.labels} if said.labels else {})
    return [{"file": name, "count": len(each), "labels": list(each[:SHOWN_LABELS])} for name, each in found.items()]


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _format(path: Path) -> str:
    """The name of a file's format."""
    head = b""
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(HEAD)
    return next((f.name for f in formats() if f.recognize(head, path)), "")


def _options(options: Options) -> dict[str, str]:
    """The options that differ from their defaults, and the most important ones."""
    plain = Options()
    always = ("executor", "num_threads", "planner", "optimize")
    return {
        each.name: _text(getattr(options, each.name))
        for each in fields(Options)
        if each.name != "fixed" and (each.name in always or getattr(options, each.name) != getattr(plain, each.name))
    }


def _text(value: object) -> str:
    if isinstance(value, tuple | frozenset):
        return ";".join(sorted(map(str, value)) if isinstance(value, frozenset) else map(str, value))
    return str(value)


def _estimate(found: Compiled, program: Program, peaks: dict[str, Any]) -> dict[str, Any]:
    """The expected time of a run and of each group in every subgraph. Called subgraphs count once."""
    groups: list[dict[str, Any]] = []
    total = 0.0
    for at, routine in enumerate(program.routines):
        seconds = expected(routine, found.backends, peaks)
        total += sum(seconds)
        kept = [group for step in routine.steps for group in step.sequence.groups]
        groups += [
            {
                "subgraph": at,
                "operations": list(group.operations),
                "us": time * 1e6,
                "flops": arithmetic(routine.subgraph, group),
                "bytes": traffic(routine.subgraph, group),
                "stored": is_stored(routine.subgraph, group),
            }
            for group, time in zip(kept, seconds, strict=True)
        ]
    called = any(operation.op.subgraphs for routine in program.routines for operation in routine.subgraph.operations)
    return {"us": total * 1e6, "calls_subgraphs": called, "groups": groups}


def _graphs(found: Compiled) -> dict[str, Any]:
    """Every subgraph at each stage, and for compiled ones the backends of operations and places of tensors."""
    graphs = Graphs()
    subgraphs = []
    for index, stages in sorted(found.stages.items()):
        told: dict[str, Any] = {"index": index, "name": stages[0].graph.name}
        told["stages"] = [{"name": stage.name, "graph": graphs.add(stage.graph)} for stage in stages]
        if found.program is not None:
            routine = found.program.routines[index]
            if routine.subgraph.operands:
                told["stages"].append({"name": "compiled", "graph": graphs.add(routine.subgraph)})
                told["places"] = places(routine, found.backends)
                told["arenas"] = arenas(routine)
        subgraphs.append(told)
    return {
        "subgraphs": subgraphs,
        "graphs": graphs.data,
        # A model that compiles is within the limits; one that does not may declare constants of any size.
        "constants": constants(graphs.constants, read=found.program is not None),
        "stages_left_out": found.dropped,
    }
