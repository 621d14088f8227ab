"""Runs of sub-networks on devices, begun again on another one where a device is lost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from onert.host.device_manager import DeviceManager, Done, Result
from onert.host.errors import DeviceLostError
from onert.host.line import Call
from onert.ir import Array

from .request import Request


def begin(request: Request, at: int, inputs: Sequence[Array], done: Done, retries: int, *, here: bool) -> Result | None:
    """Give the sub-network number `at` to a device; what comes of it where it is over already, and `done` is told
    nothing.

    A run whose device is lost is begun again up to `retries` times, unless the request is late. One on the state of a
    sequence is not, because the state was lost too. With `here` the calling thread is lent to a device that is idle.
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
        except Exception as error:  # the device does not have it, or was stopped: the request's error
            result = error
        if not _again(request, result, left):
            return result
        left -= 1
        lost = device


def _made(
    request: Request, at: int, function: str, inputs: Sequence[Array], done: Done, left: int, number: int
) -> tuple[Call, Done]:
    """The run on one of the sub-network's devices, and who is told."""
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
    """A device has run a sub-network that may be begun again."""
    if _again(request, result, left):
        ended = _begin(request, at, inputs, done, left - 1, device, here=False)
        if ended is None:
            return
        result = ended
    done(result)


def _again(request: Request, result: Result, left: int) -> bool:
    """Whether a run is to be begun again after this came of it; it is counted then."""
    if not isinstance(result, DeviceLostError) or not left or request.is_late:
        return False
    request.network.counters.retry()
    return True
