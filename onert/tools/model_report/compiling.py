"""Compile a model under observation: the program, and each subgraph after every pass that changed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from attrs import field, frozen

from onert.backend import Backend, Program
from onert.backend.registry import load_backends
from onert.compiler import Options
from onert.compiler.compiler import compilation
from onert.ir import OnertError, Package, Shape, Subgraph, Subgraphs
from onert.ir.analysis.model_inference import infer_model
from onert.ir.value import Value
from onert.tools.open_shapes import TRIES, Choice, choices

MOST_STAGES = 60
"""The most stages recorded for a subgraph; later ones are only counted."""


@frozen
class Stage(Value):
    """A subgraph after the named pass. "file" is the subgraph in the model file."""

    name: str
    graph: Subgraph


@frozen(eq=False)
class Compiled:
    """The result of compiling a model. If that failed, `error` has the reason and there is no program.

    `model` is the linked package with inferred types where possible. `stages` are by subgraph index; `dropped` counts
    those beyond `MOST_STAGES`. `taken` has the shapes chosen for dynamic inputs that the options do not set; the shapes
    that the model declares for them are in `left_open`, by position.
    """

    package: Package
    options: Options
    backends: tuple[Backend, ...]
    model: Subgraphs
    entry: int
    stages: dict[int, list[Stage]]
    program: Program | None
    error: str = ""
    dropped: int = 0
    left_open: Mapping[int, Shape] = field(factory=dict)
    taken: Choice = field(factory=Choice)
    notes: tuple[str, ...] = field(default=())


def compiled(package: Package, options: Options) -> Compiled:
    """Compile the package with these options, and with the first suitable shapes for dynamic inputs.

    A failure is recorded in `error` instead of being raised, so that the report can still describe the model. Raises
    BackendError if none of the backends can be loaded.
    """
    chosen = options.with_config(package.config)
    backends = load_backends(chosen.backends)
    first: Compiled | None = None
    try:
        for taken in islice(choices(package, chosen.signature, chosen.input_shapes), TRIES):
            found = _compiled(package, chosen, backends, taken)
            if found.program is not None:
                return found
            if first is not None and first.error == found.error:  # the error does not depend on the shapes
                break
            first = first or found
    except OnertError as error:
        return Compiled(package, chosen, backends, package.model, 0, _of_files(package.model), None, str(error))
    assert first is not None
    return first


def _compiled(package: Package, chosen: Options, backends: tuple[Backend, ...], taken: Choice) -> Compiled:
    """Compile the package for the chosen shapes. Raises OnertError only for errors before the compilation proper."""
    stages: dict[int, list[Stage]] = {}
    dropped: list[str] = []

    def watch(index: int, name: str, graph: Subgraph) -> None:
        known = stages.setdefault(index, [])
        if len(known) < MOST_STAGES:
            known.append(Stage(name, graph))
        else:
            dropped.append(name)

    asked = chosen.choose(input_shapes={**chosen.input_shapes, **taken.shapes})
    made = compilation(package, asked, backends, watch=watch)
    entry = made.entry.reshaped(made.shapes)
    try:
        model = infer_model(entry.model, entry.index)
    except OnertError:
        model = entry.model  # compiling reports the error
    found = _of_files(entry.model)
    program, said = _program(made.first)
    for index, seen in stages.items():
        found[index].extend(seen)
    left_open = {at: made.entry.inputs[at].open_shape for at in taken.shapes}
    return Compiled(package, chosen, backends, model, entry.index, found, program, said, len(dropped), left_open, taken)


def _program(make: object) -> tuple[Program | None, str]:
    """The program, or the error message if there is none."""
    assert callable(make)
    try:
        return make(), ""
    except OnertError as error:
        return None, str(error)


def _of_files(model: Subgraphs) -> dict[int, list[Stage]]:
    return {index: [Stage("file", graph)] for index, graph in enumerate(model.subgraphs)}


def names(backends: Sequence[Backend]) -> list[str]:
    """The backends' names, in order of preference."""
    return [backend.name for backend in backends]
