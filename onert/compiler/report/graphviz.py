"""Subgraphs as Graphviz graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from onert.backend import Routine
from onert.ir import CompileError, Subgraph, Subgraphs
from onert.ir.process.replacing import replace

_COLOURS = ("lightblue", "palegreen", "khaki", "lightsalmon", "plum", "lightgrey")


def dot(subgraph: Subgraph, routine: Routine | None = None) -> str:
    """The subgraph in the DOT language: operations as boxes, tensors as edges, constants omitted.

    With its routine, operations have the colour of their backend and are grouped by step.
    """
    lines = [f"digraph {_quoted(subgraph.name or 'main')} {{", "  node [shape=box, style=filled, fillcolor=white];"]
    if routine is None:
        lines += [f"  o{at} [label={_quoted(str(o))}];" for at, o in enumerate(subgraph.operations)]
    else:
        lines += _steps(routine)
    for side, operands in (("in", subgraph.inputs), ("out", subgraph.outputs)):
        for position, operand in enumerate(operands):
            name = subgraph.operands[operand].name or f"{side} {position}"
            lines.append(f"  {side}{position} [label={_quoted(name)}, shape=ellipse];")
    sources = {operand: f"in{position}" for position, operand in enumerate(subgraph.inputs)}
    sources.update((operand, f"o{at}") for operand, at in subgraph.definitions.items())
    reads = [(f"o{at}", operand) for at, o in enumerate(subgraph.operations) for operand in dict.fromkeys(o.used)]
    reads += [(f"out{position}", operand) for position, operand in enumerate(subgraph.outputs)]
    for target, operand in reads:
        if operand in sources:
            text = f"%{operand} {subgraph.type(operand)}"
            lines.append(f"  {sources[operand]} -> {target} [label={_quoted(text)}];")
    return "\n".join((*lines, "}", ""))


def graphs(model: Subgraphs, routines: Sequence[Routine], level: int) -> dict[str, str]:
    """The texts of dot files by file stem: the lowered subgraphs, and from level 2 on also those before lowering."""
    found = {f"after_lower_subg-{at}": dot(routine.subgraph, routine) for at, routine in enumerate(routines)}
    if level > 1:
        found |= {f"before_lower_subg-{at}": dot(subgraph) for at, subgraph in enumerate(model.subgraphs)}
    return found


def _steps(routine: Routine) -> list[str]:
    colours: dict[str, str] = {}
    lines = []
    for number, step in enumerate(routine.steps):
        colour = colours.setdefault(step.backend, _COLOURS[len(colours) % len(_COLOURS)])
        lines.append(f"  subgraph cluster_{number} {{ label={_quoted(f'step {number} {step.backend}')};")
        for at in step.sequence.operations:
            label = _quoted(str(routine.subgraph.operations[at]))
            lines.append(f"    o{at} [label={label}, fillcolor={colour}];")
        lines.append("  }")
    return lines


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def write_dots(folder: Path, graphs: Mapping[str, str]) -> None:
    """Write graphs, given by file stem. Raises CompileError if a file cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for stem, text in graphs.items():
            replace(folder / f"{stem}.dot", (text.encode(),))
    except OSError as error:
        raise CompileError(f"graphs cannot be written to {folder}: {error.strerror or error}") from error
