"""A backend whose memory is in another process, and that process."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Event as Moment
from threading import Lock, Thread
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert.backend import Backend, Event, Sequence, Settings, Tensors
from onert.ir import Array, BackendError, CallTypes, Context, ExecutionError, Operation, TensorType, evaluate
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.unary import Unary
from onert.ir.shape import static

LIMIT = 1 << 20
"""The device's memory in bytes."""


@frozen
class Handle:
    """An address on the device: an arena and an offset."""

    arena: int
    offset: int = 0


class Lane:
    """One queue of the device: a thread that runs its work in order and remembers the first failure."""

    def __init__(self, reply: Callable[[tuple[bool, Any]], None]) -> None:
        self._reply = reply
        self._failed = ""
        self.work: SimpleQueue[tuple[bool, Callable[[], Any]]] = SimpleQueue()
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            answered, do = self.work.get()
            try:
                answer = do()
            except Exception as error:
                self._failed = self._failed or f"{type(error).__name__}: {error}"
                answer = None
            if answered:
                self._reply((False, self._failed) if self._failed else (True, answer))
                self._failed = ""


def serve(pipe: Connection) -> None:
    """The device: numbered arenas, evaluated operations, work in lanes. Replies only if an answer is requested."""
    arenas: dict[int, bytearray] = {}
    kernels: dict[int, list[tuple[Any, list[tuple[Handle, TensorType]], tuple[Handle, TensorType]]]] = {}
    events: dict[int, Moment] = {}
    failing: list[str] = []
    failed: dict[int, str] = {}

    def reply(answer: tuple[bool, Any]) -> None:
        known = dict(failed)
        pipe.send((*answer, known))
        for number in known:
            del failed[number]

    def allocate(nbytes: int) -> int:
        if sum(map(len, arenas.values())) + nbytes > LIMIT:
            raise MemoryError(f"{nbytes} bytes are more than the device has left")
        number = max(arenas, default=0) + 1
        arenas[number] = bytearray(nbytes)
        return number

    def array(handle: Handle, type_: TensorType) -> Array:
        flat = np.frombuffer(arenas[handle.arena], np.uint8)[handle.offset : handle.offset + type_.nbytes]
        return flat.view(type_.dtype.numpy).reshape(static(type_.shape))

    def run(number: int, delay: float) -> None:
        time.sleep(delay)
        if failing:
            failed[number] = f"ValueError: {failing.pop()}"
        for op, reads, (target, type_) in kernels[number]:
            types = CallTypes(tuple(t for _, t in reads), (type_,))
            (result,) = evaluate(op, [array(h, t) for h, t in reads], types)
            array(target, type_)[...] = result

    commands: dict[str, Callable[..., Any]] = {
        "arenas": lambda: (os.getpid(), len(arenas), sum(map(len, arenas.values()))),
        "allocate": allocate,
        "free": lambda number: arenas.pop(number) and None,
        "write": lambda handle, type_, given: array(handle, type_).__setitem__(..., given),
        "read": lambda handle, type_: array(handle, type_).copy(),
        "copy": lambda source, target, type_: array(target, type_).__setitem__(..., array(source, type_)),
        "bind": kernels.__setitem__,
        "run": run,
        "fail": failing.append,
        "record": lambda number: events[number].set(),
        "follow": lambda number: events[number].wait(60),
        "wait": lambda: None,
    }
    lanes: dict[int, Lane] = {}
    while True:
        try:
            answered, lane, name, *arguments = pipe.recv()
        except EOFError:
            return
        if name in ("record", "follow"):
            events.setdefault(arguments[0], Moment())
        if lane not in lanes:
            lanes[lane] = Lane(reply)
        lanes[lane].work.put((answered, partial(commands[name], *arguments)))


class Device:
    """The host's end of the pipe; requests are answered one at a time.

    `asked` counts the requests that the host waited for by name, `sent` lists the bytes of each copy to the device.
    """

    def __init__(self, process: multiprocessing.process.BaseProcess, pipe: Connection) -> None:
        self.process = process
        self.asked: Counter[str] = Counter()
        self.sent: list[int] = []
        self.failed: dict[int, str] = {}
        self.numbers = count()
        self._queues: dict[int, DeviceQueue] = {}
        self._pipe = pipe
        self._lock = Lock()

    def queue(self, lane: int) -> DeviceQueue:
        """The queue of a lane, always the same object."""
        return self._queues.setdefault(lane, DeviceQueue(self, lane))

    def ask(self, name: str, *arguments: Any, lane: int = 0) -> Any:
        """Send a request and return the answer, after everything the lane was sent before."""
        with self._lock:
            self.asked[name] += 1
            try:
                self._pipe.send((True, lane, name, *arguments))
                done, answer, failed = self._pipe.recv()
            except (EOFError, OSError) as error:
                raise ExecutionError("the device has gone away") from error
        self.failed.update(failed)
        if not done:
            raise ExecutionError(f"the device refuses {name}: {answer}")
        return answer

    def post(self, name: str, *arguments: Any, lane: int = 0) -> None:
        """Enqueue work in a lane without waiting."""
        with self._lock:
            try:
                self._pipe.send((False, lane, name, *arguments))
            except (EOFError, OSError) as error:
                raise ExecutionError("the device has gone away") from error


@frozen(eq=False)
class DeviceEvent:
    """A point in the work of a lane."""

    queue: DeviceQueue
    number: int

    def wait(self) -> None:
        self.queue.device.ask("wait", lane=self.queue.lane)


@frozen(eq=False)
class DeviceQueue:
    """A lane of a device."""

    device: Device
    lane: int

    def record(self) -> DeviceEvent:
        event = DeviceEvent(self, next(self.device.numbers))
        self.device.post("record", event.number, lane=self.lane)
        return event

    def follow(self, event: Event) -> None:
        if isinstance(event, DeviceEvent) and event.queue.device is self.device:
            self.device.post("follow", event.number, lane=self.lane)
        else:
            event.wait()


class DeviceMemory:
    """The memory space of a device; copies are work in its first lane."""

    name = "device"
    alignment = 32

    def __init__(self, device: Device) -> None:
        self._device = device
        self.queue = device.queue(0)
        self.copies: list[str] = []

    def allocate(self, nbytes: int) -> Handle:
        return Handle(self._device.ask("allocate", nbytes))

    def free(self, arena: Handle) -> None:
        self._device.post("free", arena.arena)

    def view(self, arena: Handle, offset: int, type_: TensorType) -> Handle:
        return evolve(arena, offset=arena.offset + offset)

    def copy_in(self, source: Array, target: Handle, type_: TensorType) -> None:
        self.copies.append("in")
        self._device.sent.append(type_.nbytes)
        self._device.post("write", target, type_, source)

    def copy_out(self, source: Handle, type_: TensorType) -> Array:
        self.copies.append("out")
        array: Array = self._device.ask("read", source, type_)
        return array

    def copy(self, source: Handle, target: Handle, type_: TensorType) -> None:
        self._device.post("copy", source, target, type_)


class RemoteBackend(Backend):
    """Binary and unary arithmetic on floats in a lane of a device; each sequence takes an extra `delay` seconds."""

    api_version = 2

    def __init__(self, device: Device, name: str = "remote", lane: int = 0, delay: float = 0) -> None:
        self.name = name  # type: ignore[misc] # the contract's class variable is an instance attribute here
        self.device = device
        self.queue = device.queue(lane)
        self.delay = delay
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
        return RemoteKernel(sequence, self.queue, self.delay)


@frozen(eq=False)
class RemoteKernel:
    """A sequence that is sent to the device once and started by one request."""

    sequence: Sequence
    queue: DeviceQueue
    delay: float

    def bind(self, tensors: Tensors, context: Context) -> RemoteCall:
        work = [
            (
                operation.op,
                [(tensors[i].buffer, tensors[i].type) for i in operation.used],
                (tensors[operation.outputs[0]].buffer, tensors[operation.outputs[0]].type),
            )
            for operation in self.sequence.body
        ]
        call = RemoteCall(self.queue, next(self.queue.device.numbers), self.delay)
        self.queue.device.post("bind", call.number, work, lane=self.queue.lane)
        return call


@frozen(eq=False)
class RemoteCall:
    """A sequence bound to its tensors on the device; the call enqueues it."""

    queue: DeviceQueue
    number: int
    delay: float

    def __call__(self) -> None:
        self.queue.device.post("run", self.number, self.delay, lane=self.queue.lane)

    def check(self) -> None:
        failed = self.queue.device.failed.pop(self.number, None)
        if failed is not None:
            raise ExecutionError(f"the device failed: {failed}")


@contextmanager
def device() -> Iterator[Device]:
    """A device in a separate process."""
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
