"""Sending programs to other processes, in the cache's format but with all constants included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from onert.backend import Backend, Program, Step
from onert.ir import BackendError, CompileError
from onert.ir.ops.control_flow.rest import Rest

from .encoding import EncodeError
from .parts import Parts
from .records import Records
from .serialize import UNUSABLE, pack, revived, without_kernels


def serialise(program: Program, backends: Sequence[Backend]) -> list[bytes | memoryview]:
    """A program's bytes, in pieces. Raises BackendError if a backend's kernels are not data, or if parts of the program
    are compiled when it runs; CompileError if it contains operations declared by third-party code."""
    operations = program.main.subgraph.operations
    if any(isinstance(operation.op, Rest) or getattr(operation.op, "parts", ()) for operation in operations):
        raise BackendError("a program with parts that are compiled when it runs cannot be sent to another process")
    by_name = {backend.name: backend for backend in backends}
    kernels = tuple(tuple(_kernel_data(by_name, step) for step in routine.steps) for routine in program.routines)
    try:
        return pack((without_kernels(program), kernels, None, None), Records(backends), Parts(()))
    except EncodeError as error:
        raise CompileError(f"{program.name or 'the model'} cannot be sent to another process: {error}") from error


def _kernel_data(backends: Mapping[str, Backend], step: Step) -> Any:
    found = backends[step.backend].keep(step.kernel)
    if found is None:
        raise BackendError(f"the kernels of backend {step.backend!r} cannot be sent to another process")
    return found


def deserialise(payload: memoryview, backends: Sequence[Backend]) -> Program:
    """The program sent by an identical installation, for the shapes that it was compiled for. The payload must be
    aligned to a cache line, and is used in place. Raises BackendError if it has no program of these backends."""
    by_name = {backend.name: backend for backend in backends}
    try:
        program = revived(payload, Records(backends), Parts(()), by_name).program
    except UNUSABLE as error:
        raise BackendError(f"the program that was received cannot be read: {error}") from error
    return evolve(program, specialize=_refuse_other_shapes)


def _refuse_other_shapes(shapes: Mapping[int, tuple[int, ...]]) -> Program:
    raise CompileError("a program sent to another process accepts only inputs of the shapes that it was compiled for")
