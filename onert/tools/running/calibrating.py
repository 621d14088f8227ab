"""Calibrate `onert_run -q uint8` and `-q int16`: run the float model and record the range of every tensor."""

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
from .feeding import feed, is_random

Ranges = dict[int, tuple[float, float]]


def ranges(package: Package, runs: Iterable[Sequence[Array]], num_threads: int | None = None) -> tuple[Ranges, int]:
    """The range of each float tensor in a model's first subgraph, by tensor number, and the number of runs.

    Each of `runs` holds the inputs in order; their shapes may differ between runs. All float tensors are made outputs,
    so that no optimisation removes them. Raises CompileError if the package has several models.
    """
    if len(package.models) != 1:
        raise CompileError(f"the package has {len(package.models)} models, expected one to calibrate")
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
    """The graph with every float result as an output with a unique name, and the numbers of these tensors."""
    made = [o for operation in graph.operations for o in operation.outputs]
    seen = tuple(o for o in dict.fromkeys(made) if graph.type(o).dtype is DType.FLOAT32)
    operands = tuple(evolve(operand, name=f"tensor {at}") for at, operand in enumerate(graph.operands))
    return evolve(graph, operands=operands, outputs=seen), seen


def calibrated(options: argparse.Namespace) -> tuple[Ranges, int]:
    """Ranges over the calibration runs: the given items, at most `--minmax_runs` of them if it is set, or else that
    many runs on random inputs. Raises CompileError if a signature is chosen."""
    if options.signature is not None:
        raise CompileError(
            f"-q {options.quantize} quantises a model's first graph, and cannot be used with --signature"
        )
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
