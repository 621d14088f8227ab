"""Runs of sub-networks on devices, retried on another device if one is lost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from onert.host.device_manager import DeviceManager, Done, Result
from onert.host.errors import DeviceLostError
from onert.host.line import Call
from onert.ir import Array

from .request import Request


def start_run(
    request: Request, at: int, inputs: Sequence[Array], done: Done, retries: int, *, here: bool
) -> Result | None:
    """Start a run of sub-network `at` on a device. Returns the result if the run is already over; else `done` gets it.

    A run whose device is lost is retried up to `retries` times, unless the request is late. Runs on the state of a
    sequence are not retried, because the state was lost too. With `here`, an idle device may use the calling thread.
    """
    stateful = request.session is not None and request.network.nodes[at].stateful
    return _begin(request, at, inputs, done, 0 if stateful else retries, None, here=here)


def _begin(
    request: Request,
    at: int,
    inputs: Sequence[Array],
    done: Done,
    left: int,
    lost: DeviceManager | None,
    *,
    here: bool,
) -> Result | None:
    node = request.network.nodes[at]
    while True:
        session = device = None
        try:
            if request.session is None or not node.stateful:
                device, function = node.choose(lost)
            else:
                device, function = request.session.device(at, node), node.functions[0]
                session = request.session.number
            result = device.run_here(function, inputs, session) if here else None
            if result is None and session is None and node.line is not None and lost is None:
                made = partial(_made, request, at, function, inputs, done, left)
                device.offer(node.line, node.devices.index(device), request.priority, made)
                return None
            if result is None:
                told = partial(_ended, request, at, inputs, done, left, device) if left else done
                device.run_function(function, inputs, told, request.priority, session)
                return None
        except Exception as error:  # the function is missing or the device was stopped: an error of the request
            result = error
        if not _again(request, result, left):
            return result
        left -= 1
        lost = device


def _made(
    request: Request, at: int, function: str, inputs: Sequence[Array], done: Done, left: int, number: int
) -> tuple[Call, Done]:
    """The run on the sub-network's device `number`, and the function that gets its result."""
    device = request.network.nodes[at].devices[number]
    told = partial(_ended, request, at, inputs, done, left, device) if left else done
    return device.call(function, inputs), told


def _ended(
    request: Request,
    at: int,
    inputs: Sequence[Array],
    done: Done,
    left: int,
    device: DeviceManager,
    result: Result,
) -> None:
    """Called when a run that may be retried is over."""
    if _again(request, result, left):
        ended = _begin(request, at, inputs, done, left - 1, device, here=False)
        if ended is None:
            return
        result = ended
    done(result)


def _again(request: Request, result: Result, left: int) -> bool:
    """Whether to retry a run after this result. If so, the retry is counted."""
    if not isinstance(result, DeviceLostError) or not left or request.is_late:
        return False
    request.network.counters.retry()
    return True
