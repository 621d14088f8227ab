"""The futures of requests behave like those of the standard library."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, as_completed, wait
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE

from onert.host.requests.promise import Promise

ANSWER = {"y": np.zeros(1)}
ENDS: dict[str, Callable[[Promise], object]] = {
    "answered": lambda promise: promise.start() and promise.set_result(ANSWER),
    "failed": lambda promise: promise.start() and promise.set_exception(ValueError("no")),
    "cancelled": Promise.cancel,
}


def library() -> Future[Any]:
    return Future()


def outcome(future: Future[Any]) -> tuple[object, ...]:
    try:
        got: object = future.result(PATIENCE) is ANSWER
    except (ValueError, CancelledError) as error:
        got = type(error)
    return got, future.done(), future.running(), future.cancelled(), future.cancel()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("before", [True, False])
def test_every_waiter_is_notified_exactly_once(end: str, before: bool) -> None:
    """Callbacks, `wait`, `as_completed` and `result` in other threads, started before or after the promise ends."""
    promise, other = Promise(), Promise()
    notified: list[object] = []
    if before:
        ENDS[end](promise)
    promise.add_done_callback(notified.append)
    promise.add_done_callback(notified.append)
    found: list[object] = []

    def look() -> None:
        found.append(wait([promise, other], PATIENCE, FIRST_COMPLETED).done)
        found.append(next(as_completed([other, promise], PATIENCE)))
        found.append(outcome(promise)[0])

    threads = [Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    if not before:
        ENDS[end](promise)
    for thread in threads:
        thread.join(PATIENCE)
    assert notified == [promise] * 2
    assert sorted(map(str, found)) == sorted(map(str, [{promise}, promise, outcome(promise)[0]] * 3))


@pytest.mark.parametrize("end", ENDS)
def test_a_promise_behaves_like_a_standard_future(end: str) -> None:
    promise, future = Promise(), library()
    if end == "cancelled":
        assert promise.cancel() == future.cancel() is True
        assert promise.start() is future.set_running_or_notify_cancel() is False
    else:
        assert promise.start() is future.set_running_or_notify_cancel() is True
        assert promise.running() is future.running() is True
        assert promise.cancel() is future.cancel() is False
        for each in (promise, future):
            if end == "answered":
                each.set_result(ANSWER)
            else:
                each.set_exception(ValueError("no"))
    assert outcome(promise) == outcome(future)


def test_waiting_for_a_missing_answer_times_out() -> None:
    with pytest.raises(TimeoutError):
        Promise().result(0.01)
    with pytest.raises(TimeoutError):
        Promise().exception(0)


def test_event_loops_can_wait_for_promises() -> None:
    async def both() -> object:
        promise = Promise()
        asked = asyncio.wrap_future(promise)
        Thread(target=ENDS["answered"], args=[promise]).start()
        return await asyncio.wait_for(asked, PATIENCE)

    assert asyncio.run(both()) is ANSWER


def test_a_failing_callback_does_not_prevent_others_from_being_called(caplog: pytest.LogCaptureFixture) -> None:
    promise = Promise()
    notified: list[object] = []
    promise.add_done_callback(lambda found: found.missing)  # type: ignore[attr-defined]
    promise.add_done_callback(notified.append)
    ENDS["answered"](promise)
    assert notified == [promise]
    assert "exception calling callback" in caplog.text


@pytest.mark.parametrize("end", ENDS)
def test_a_waiter_registered_as_the_promise_ends_is_notified(end: str) -> None:
    """`wait` checks the state before it registers its waiter; the promise may end in between."""
    promise = Promise()
    ENDS[end](promise)
    notified: list[object] = []
    promise._waiters.append(
        SimpleNamespace(add_result=notified.append, add_exception=notified.append, add_cancelled=notified.append)
    )
    assert notified == [promise]
