"""A backend whose memory lies in another process, and the process."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert.backend import Backend, Sequence, Settings, Tensors
from onert.ir import Array, BackendError, CallTypes, Context, ExecutionError, Operation, TensorType, evaluate
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.unary import Unary
from onert.ir.shape import static

LIMIT = 1 << 20
"""Bytes that the device has."""


@frozen
class Handle:
    """A place on the device: which arena, and where in it."""

    arena: int
    offset: int = 0


def serve(pipe: Connection) -> None:
    """The device: arenas by number, operations by their meaning."""
    arenas: dict[int, bytearray] = {}

    def allocate(nbytes: int) -> int:
        if sum(map(len, arenas.values())) + nbytes > LIMIT:
            raise MemoryError(f"{nbytes} bytes are more than the device has left")
        number = max(arenas, default=0) + 1
        arenas[number] = bytearray(nbytes)
        return number

    def array(handle: Handle, type_: TensorType) -> Array:
        flat = np.frombuffer(arenas[handle.arena], np.uint8)[handle.offset : handle.offset + type_.nbytes]
        return flat.view(type_.dtype.numpy).reshape(static(type_.shape))

    def run(work: list[tuple[Any, list[tuple[Handle, TensorType]], tuple[Handle, TensorType]]]) -> None:
        for op, reads, (target, type_) in work:
            types = CallTypes(tuple(t for _, t in reads), (type_,))
            (result,) = evaluate(op, [array(h, t) for h, t in reads], types)
            array(target, type_)[...] = result

    commands: dict[str, Callable[..., Any]] = {
        "arenas": lambda: (os.getpid(), len(arenas), sum(map(len, arenas.values()))),
        "allocate": allocate,
        "free": lambda number: arenas.pop(number) and None,
        "write": lambda handle, type_, given: array(handle, type_).__setitem__(..., given),
        "read": lambda handle, type_: array(handle, type_).copy(),
        "run": run,
    }
    while True:
        try:
            name, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, commands[name](*arguments)))
        except Exception as error:
            pipe.send((False, f"{type(error).__name__}: {error}"))


class Device:
    """The other end of the pipe; one request at a time."""

    def __init__(self, process: multiprocessing.process.BaseProcess, pipe: Connection) -> None:
        self.process = process
        self._pipe = pipe
        self._lock = Lock()

    def ask(self, *request: Any) -> Any:
        with self._lock:
            try:
                self._pipe.send(request)
                done, answer = self._pipe.recv()
            except (EOFError, OSError) as error:
                raise ExecutionError("the device has gone away") from error
        if not done:
            raise ExecutionError(f"the device refuses {request[0]}: {answer}")
        return answer


class DeviceMemory:
    """The memory space of a device."""

    name = "device"
    alignment = 32

    def __init__(self, device: Device) -> None:
        self._device = device
        self.copies: list[str] = []

    def allocate(self, nbytes: int) -> Handle:
        return Handle(self._device.ask("allocate", nbytes))

    def free(self, arena: Handle) -> None:
        self._device.ask("free", arena.arena)

    def view(self, arena: Handle, offset: int, type_: TensorType) -> Handle:
        return evolve(arena, offset=arena.offset + offset)

    def copy_in(self, source: Array, target: Handle, type_: TensorType) -> None:
        self.copies.append("in")
        self._device.ask("write", target, type_, source)

    def copy_out(self, source: Handle, type_: TensorType) -> Array:
        self.copies.append("out")
        array: Array = self._device.ask("read", source, type_)
        return array


class RemoteBackend(Backend):
    """Adds, multiplies and bends floats on a device."""

    name = "remote"

    def __init__(self, device: Device) -> None:
        self.device = device
        self._memory = DeviceMemory(device)

    @property
    def memory(self) -> DeviceMemory:
        return self._memory

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        if not isinstance(operation.op, Binary | Unary):
            return f"the device has no {operation.op.label}"
        try:
            pickle.dumps(operation.op)
        except (pickle.PicklingError, AttributeError) as error:
            return f"{operation.op.label} cannot be sent to the device: {error}"
        plain = all(t is not None and t.dtype.is_float and t.is_static for t in (*types.inputs, *types.outputs))
        return None if plain else "the device knows floats of known shapes"

    def generate(self, sequence: Sequence, settings: Settings) -> RemoteKernel:
        if not self.device.process.is_alive():
            raise BackendError("the device has gone away")
        return RemoteKernel(sequence, self.device)


@frozen(eq=False)
class RemoteKernel:
    """A sequence that one request runs."""

    sequence: Sequence
    device: Device

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        work = [
            (
                operation.op,
                [(tensors[i].buffer, tensors[i].type) for i in operation.used],
                (tensors[operation.outputs[0]].buffer, tensors[operation.outputs[0]].type),
            )
            for operation in self.sequence.body
        ]
        return lambda: self.device.ask("run", work)


@contextmanager
def device() -> Iterator[Device]:
    """A device, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there,), daemon=True)
    process.start()
    there.close()
    try:
        yield Device(process, here)
    finally:
        here.close()
        process.join(20)
        if process.is_alive():
            process.terminate()
