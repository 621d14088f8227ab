"""Runs of a float model that show the range of every tensor: what `onert_run -q uint8` is calibrated with."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from attrs import evolve

import onert
from onert.backend import Program
from onert.compiler import Options
from onert.exec.observers import MinMax
from onert.frontend.metadata import ModelMetadata
from onert.ir import Array, CompileError, DType, Package, Subgraph
from onert.tools import inputs

from .choosing import choices, compiled, loaded, shapes_to_run
from .giving import feed, is_random

Ranges = dict[int, tuple[float, float]]


def ranges(package: Package, runs: Iterable[Sequence[Array]], num_threads: int | None = None) -> tuple[Ranges, int]:
    """The least and the greatest real element of each float tensor of a model's first subgraph, by its number, and how
    many runs showed them.

    Each run is given the inputs in order; their shapes may differ. Every tensor is an output of what is run, so that
    no compilation leaves one out. CompileError where the package has several models.
    """
    if len(package.models) != 1:
        raise CompileError(f"the package has {len(package.models)} models, expected one to take ranges of")
    model = package.model
    watched, seen = _watched(model.primary)
    whole = evolve(model, subgraphs=(watched, *model.subgraphs[1:]), signatures=())
    more: dict[str, Any] = {} if num_threads is None else {"num_threads": num_threads}
    recorder, count = MinMax(), 0
    with onert.Execution(onert.compile(Package((whole,), "ranges"), **more)) as execution:
        for arrays in runs:
            count += 1
            made = list(execution.run(list(arrays)).values())
            for tensor, array in zip(seen, made, strict=True):
                recorder.add(str(tensor), array)
            for tensor, array in zip(watched.inputs, arrays, strict=True):
                recorder.add(str(tensor), array)
    return {int(name): (found.low, found.high) for name, found in recorder.ranges.items()}, count


def _watched(graph: Subgraph) -> tuple[Subgraph, tuple[int, ...]]:
    """The graph with every float result as an output of its own name, and which these are."""
    made = [o for operation in graph.operations for o in operation.outputs]
    seen = tuple(o for o in dict.fromkeys(made) if graph.type(o).dtype is DType.FLOAT32)
    operands = tuple(evolve(operand, name=f"tensor {at}") for at, operand in enumerate(graph.operands))
    return evolve(graph, operands=operands, outputs=seen), seen


def calibrated(options: argparse.Namespace) -> tuple[Ranges, int]:
    """Ranges over the runs that arguments ask for: all items that are given, `--minmax_runs` of random numbers, of
    which it is also the most."""
    if options.signature is not None:
        raise CompileError(f"-q {options.quantize} takes the first graph of a model, not --signature's")
    package = loaded(options)
    program = compiled(options, package, Options.from_environment(os.environ, **choices(options)))
    with onert.Execution(program) as execution:
        for index, shape in shapes_to_run(options).items():
            execution.set_input_shape(index, shape)
        fed, _ = feed(options, package, execution, ModelMetadata())
        return ranges(package, _runs(options, execution.program, fed), options.num_threads)


def _runs(options: argparse.Namespace, program: Program, fed: inputs.Feed) -> Iterator[list[Array]]:
    items = ([np.asarray(one.array) for one in item] for item in fed.items)
    if not is_random(options):
        yield from islice(items, options.minmax_runs or None)
        return
    yield from items
    rng = np.random.default_rng(options.seed + 2)
    for _ in range(options.minmax_runs - 1):
        yield [inputs.random(info, rng) for info in program.inputs]
