"""Measure the time of operations and copies on each backend, for `exec_time.json`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from attrs import evolve, frozen

from onert import compiler
from onert.backend import Backend, Tensors
from onert.compiler import Options
from onert.compiler.scheduler.exec_time import (
    FAILED,
    FILE,
    ExecTimes,
    detail,
    is_quantized,
    load,
    merged,
    save,
    total_bytes,
)
from onert.compiler.scheduler.manual import why_not
from onert.exec import Execution
from onert.exec.observers import Observer, Work
from onert.ir import Array, DType, OnertError, Operation, Package, Subgraph, Subgraphs, TensorType
from onert.ir.ops.data_movement.permute import Permute
from onert.ir.value import Value

Measurement = tuple[str, str, bool, int, float]
"""Backend, operation, whether quantised, bytes, microseconds."""

COPIED = (1 << 10, 1 << 14, 1 << 18, 1 << 22)
"""Sizes in bytes of the tensors with which copies between memory spaces are measured."""


@frozen
class Outcome(Value):
    """Measurements, and sentences on operations that could not be measured."""

    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...]


def record(package: Package, backends: Sequence[Backend], options: Options) -> tuple[Outcome, Path]:
    """The result of `measure`, and the file in the workspace to which it was added."""
    path = Path(options.workspace_dir) / FILE
    outcome = measure(package, backends, options)
    save(merged(load(path) if path.exists() else ExecTimes(), outcome.measurements), path)
    return outcome, path


def measure(package: Package, backends: Sequence[Backend], options: Options, runs: int = 5) -> Outcome:
    """Measure every operation of a package on every backend that supports it, and copies between the backends.

    Each operation runs alone on random numbers: once to warm up, then `runs` times, of which the median is taken.
    Operations that run subgraphs or have unknown dimensions are left out. An operation that fails is recorded as
    failed, with the reason in a note.
    """
    program = compiler.compile(package, evolve(options, executor="Linear", use_scheduler=False), backends)
    found: list[Measurement] = list(copies(backends, runs))
    notes: list[str] = []
    known: set[tuple[str, str]] = set()
    for routine in program.routines:
        subgraph = routine.subgraph
        for operation in subgraph.operations:
            types = subgraph.types(operation)
            if isinstance(operation.op, Permute) or operation.op.subgraphs:
                continue
            if not all(t is None or (t.is_static and not t.dtype.is_handle) for t in (*types.inputs, *types.outputs)):
                notes.append(f"{operation} has a tensor of unknown size and is not measured")
                continue
            for backend in backends:
                key = (backend.name, detail(operation.op, types))
                if key in known or why_not(backend, operation, types) is not None:
                    continue
                known.add(key)
                try:
                    microseconds = _operation(subgraph, operation, backend, backends, options, runs)
                except OnertError as error:
                    microseconds = FAILED
                    notes.append(f"{operation} failed on {backend.name}: {error}")
                size, quantized = total_bytes(types), is_quantized(types)
                found += [(backend.name, name, quantized, size, microseconds) for name in (key[1], operation.op.label)]
    return Outcome(tuple(found), tuple(notes))


def copies(backends: Sequence[Backend], runs: int) -> Iterator[Measurement]:
    """The time to copy tensors from one backend's memory to another's, if these are different."""
    for source in backends:
        for target in backends:
            if source.memory.name == target.memory.name:
                continue
            for nbytes in COPIED:
                yield source.name, target.name, False, 2 * nbytes, _copy(source, target, nbytes, runs)


def _copy(source: Backend, target: Backend, nbytes: int, runs: int) -> float:
    type_ = TensorType(DType.FLOAT32, (nbytes // 4,))
    arenas = [(memory, memory.allocate(nbytes)) for memory in (source.memory, target.memory)]
    try:
        (a, b) = ((memory, memory.view(arena, 0, type_)) for memory, arena in arenas)
        times = []
        for _ in range(runs + 1):
            start = time.perf_counter()
            b[0].copy_in(a[0].copy_out(a[1], type_), b[1], type_)
            times.append((time.perf_counter() - start) * 1e6)
    finally:
        for memory, arena in arenas:
            memory.free(arena)
    return median(times[1:])


class _Timing(Observer):
    """Adds up the time of the pieces that one backend runs."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.nanoseconds = 0

    def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
        if work.backend == self.backend:
            self.nanoseconds += end - start


def _operation(
    subgraph: Subgraph,
    operation: Operation,
    backend: Backend,
    backends: Sequence[Backend],
    options: Options,
    runs: int,
) -> float:
    """Microseconds of one operation by itself."""
    alone = _alone(subgraph, operation)
    chosen = Options(
        num_threads=options.num_threads,
        target=options.target,
        extra=options.extra,
        optimize=False,
        op_backend_allops=backend.name,
    )
    program = compiler.compile(Package((Subgraphs((alone,)),)), chosen, backends)
    timing = _Timing(backend.name)
    execution = Execution(program, observers=(timing,))
    rng = np.random.default_rng(0)
    for position, operand in enumerate(alone.inputs):
        execution.set_input(position, _numbers(alone.type(operand), rng))
    times = []
    for _ in range(runs + 1):
        timing.nanoseconds = 0
        execution.execute()
        times.append(timing.nanoseconds / 1e3)
    execution.close()
    return max(median(times[1:]), 0.001)


def _alone(subgraph: Subgraph, operation: Operation) -> Subgraph:
    """A subgraph of one operation, whose operands other than constants are the inputs."""
    number = {operand: new for new, operand in enumerate(dict.fromkeys((*operation.used, *operation.outputs)))}
    operands = tuple(evolve(subgraph.operands[operand], variable=False) for operand in number)
    return Subgraph(
        operands,
        (operation.with_operands(number.__getitem__),),
        tuple(dict.fromkeys(number[i] for i in operation.used if not subgraph.operands[i].is_constant)),
        tuple(number[o] for o in operation.outputs),
    )


def _numbers(type_: TensorType, rng: np.random.Generator) -> Array:
    """Elements to measure with: random numbers, or zeros if they may be indices."""
    shape = tuple(d or 0 for d in type_.shape)
    kind = type_.dtype.numpy
    if type_.dtype.is_float:
        return rng.standard_normal(shape).astype(kind)
    if type_.quantization is not None and kind.itemsize == 1:
        return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape).astype(kind)
    return np.zeros(shape, kind)
