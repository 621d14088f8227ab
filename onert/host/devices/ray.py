"""A device on a node of a Ray cluster.

Source of the calls: Ray's documentation, "Actors", "Objects" and "Fault tolerance".
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from threading import Condition, Thread
from time import monotonic, perf_counter_ns, sleep
from typing import Any
from weakref import finalize, ref

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from onert.backend.registry import find_backends
from onert.host.device_config import DeviceConfig
from onert.host.device_manager import CompiledFunction
from onert.host.errors import ConfigurationError, DeviceLostError
from onert.ir import Array

from .ray_actor import RayActor
from .remote import RemoteDevice, Sent
from .sending import pieces, raised
from .worker import Worker

_LOGGER = logging.getLogger("onert.host")
_LOST = 1 << 20
"""Added to the load of a lost device, so that runs go to others."""
_PAUSE = 0.5
"""Seconds between attempts to start an actor."""
_PAYLOADS: dict[tuple[str, int], tuple[Any, Any]] = {}
"""Programs in the object store, by job and program, shared by replicas. An entry lives as long as its program."""


class _Sent(Sent):
    """A function as it is sent to nodes."""

    def __init__(self, function: CompiledFunction) -> None:
        super().__init__(function)
        backends = find_backends(function.options.backends)[0]
        settings = function.options.settings
        self.payload = _payload(function)
        self.arguments = (
            list(function.options.backends),
            settings,
            {backend.name: backend.fingerprint(settings) for backend in backends},
        )


def _payload(function: CompiledFunction) -> Any:
    """The program in the object store, stored once for all devices."""
    program = function.program
    key = (ray.get_runtime_context().get_job_id(), id(program))
    found = _PAYLOADS.get(key)
    if found is None or found[0]() is not program:
        backends = find_backends(function.options.backends)[0]
        data = np.frombuffer(b"".join(pieces(function, backends)), np.uint8)
        found = _PAYLOADS[key] = (ref(program), ray.put(data))
        finalize(program, _PAYLOADS.pop, key, None)
    return found[1]


class RayDevice(RemoteDevice[_Sent]):
    """Runs functions in an actor, one at a time, on a node that Ray chooses.

    If the actor or its node is lost during a run, the run fails with a DeviceLostError, and another actor is started on
    any node with free resources. Until then, runs go to other devices; those waiting for this one fail after `patience`
    seconds. The state of sequences is lost with the actor: their requests fail until the sequences are ended.

    Settings in `DeviceConfig.parameters` (defaults in parentheses): `address` of the cluster ("auto"); `node`, the ID
    of the preferred node; `num_cpus`, the processors that Ray reserves for the actor (the device's threads); `patience`
    (10 seconds); and `start`, the timeout for starting the first actor (120 seconds).
    """

    kind = "ray"
    place = "node"

    def __init__(self, config: DeviceConfig, threads: int) -> None:
        super().__init__(config, threads)
        self._actors: list[Any] = []
        """The current actor; empty while another one is being started."""
        self._changed = Condition()
        self._lost_at = 0.0
        self._stopped = False
        self._pid = 0

    def _setting(self, name: str, default: float) -> float:
        text = self.config.parameters.get(name)
        try:
            return default if text is None else float(text)
        except ValueError:
            raise ConfigurationError(f"device {self.name!r}: {name} is {text!r}, expected a number") from None

    def init(self) -> None:
        self._patience = self._setting("patience", 10.0)
        if not ray.is_initialized():
            address = self.config.parameters.get("address", "auto")
            try:
                ray.init(address=address, log_to_driver=False, namespace="onert")
            except (ConnectionError, RayError) as error:
                raise DeviceLostError(
                    f"device {self.name!r}: there is no Ray cluster at {address!r}: {error}"
                ) from error
        self._actors.append(self._first(self._setting("start", 120.0)))
        self._worker = worker = Worker(self.name, lambda: None)
        finalize(self, _end, worker, self._actors)

    def options(self, options: Any) -> Any:
        own = {name: v for name, v in self.config.parameters.items() if name not in _SETTINGS}
        found = super().options(options)
        return found.choose(extra={**options.extra, **own})

    def _first(self, seconds: float) -> Any:
        """Start the first actor, retrying because Ray may choose a node whose failure it has not yet noticed."""
        end = monotonic() + seconds
        while True:
            try:
                return self._made(max(end - monotonic(), 0.0))
            except DeviceLostError:
                if monotonic() + _PAUSE >= end:
                    raise
            sleep(_PAUSE)

    def _made(self, seconds: float) -> Any:
        """Start an actor with all functions. Raises DeviceLostError if that takes longer than `seconds`."""
        node = self.config.parameters.get("node")
        strategy = NodeAffinitySchedulingStrategy(node, soft=True) if node else "SPREAD"
        actor = (
            ray.remote(RayActor)
            .options(
                num_cpus=self._setting("num_cpus", self.threads),
                max_restarts=0,
                scheduling_strategy=strategy,
                runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path)}},
            )
            .remote()
        )
        try:
            self._pid = ray.get(actor.place.remote(), timeout=seconds)
            for name, each in tuple(self._sent.items()):
                self._load_on(actor, name, each)
        except (RayError, TimeoutError) as error:
            ray.kill(actor)
            raise DeviceLostError(
                f"device {self.name!r}: no actor can be started in the cluster: {type(error).__name__}"
            ) from error
        return actor

    def _load_on(self, actor: Any, name: str, each: _Sent) -> None:
        answer = ray.get(actor.load.remote(name, each.payload, *each.arguments))
        if answer:
            raise raised(answer)

    # ---- loss

    def _actor(self) -> Any:
        """The current actor. Waits for a restart in progress, and raises DeviceLostError if that takes too long."""
        with self._changed:
            while not self._actors and not self._stopped:
                left = self._lost_at + self._patience - monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            if self._actors:
                return self._actors[0]
        raise DeviceLostError(f"device {self.name!r} is lost and could not be restarted yet")

    def _lose(self, actor: Any) -> None:
        """Handle the loss of an actor: start another one in the background."""
        with self._changed:
            if actor not in self._actors or self._stopped:
                return
            self._actors.remove(actor)
            self._lost_at = monotonic()
            self._note_loss()
        Thread(target=self._start_again, name=f"{self.name}-restart", daemon=True).start()

    def _start_again(self) -> None:
        while not self._stopped:
            try:
                made = self._made(self._patience)
            except Exception as error:  # the next attempt may succeed
                _LOGGER.warning("%s", error)
                with self._changed:
                    self._changed.wait(_PAUSE)
                continue
            with self._changed:
                self._actors.append(made)
                self._changed.notify_all()
            return

    def _ask(self, what: str, method: str, *arguments: Any) -> Any:
        """Call a method of the actor. Raises DeviceLostError if the actor or its node is lost."""
        actor = self._actor()
        try:
            return ray.get(getattr(actor, method).remote(*arguments))
        except (RayActorError, ObjectLostError, GetTimeoutError) as error:
            self._lose(actor)
            raise DeviceLostError(
                f"device {self.name!r}: its actor was lost during a request to {what}: {type(error).__name__}"
            ) from None

    # ---- functions

    def _packed(self, function: CompiledFunction) -> _Sent:
        return _Sent(function)

    def _give(self, name: str, sent: _Sent) -> None:
        answer = self._ask(f"load {name!r}", "load", name, sent.payload, *sent.arguments)
        if answer:
            raise raised(answer)

    def _tell(self, what: str, name: str, session: int | None = None) -> None:
        arguments = (name,) if session is None else (name, session)
        with self._changed:
            actors = list(self._actors)
        for actor in actors:
            try:
                ray.get(getattr(actor, what).remote(*arguments))
            except RayError:
                self._lose(actor)

    # ---- runs

    @property
    def _borrows(self) -> bool:
        return bool(self._actors)

    @property
    def load(self) -> int:
        return super().load + (0 if self._actors else _LOST)

    def _run_there(self, name: str, sent: _Sent, inputs: Sequence[Array], session: int | None) -> list[Array]:
        start = perf_counter_ns()
        error, took, outputs = self._ask(f"run {name!r}", "run", name, session, *inputs)
        if error:
            raise raised(error)
        for trace in self.traces:
            # The node has another clock, so the run is shown in the middle of the call.
            middle = (start + perf_counter_ns()) // 2
            trace.ran_elsewhere(name, self.name, self._pid, middle - took // 2, middle + took // 2)
        return [array.copy() for array in outputs]  # the originals are in the object store and read-only

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        _end(self._thread, self._actors)


_SETTINGS = frozenset({"address", "node", "num_cpus", "patience", "start"})


def _end(worker: Worker, actors: list[Any]) -> None:
    """Stop the thread, then the actor."""
    worker.stop()
    while actors:
        actor = actors.pop()
        if ray.is_initialized():
            ray.kill(actor)
