"""Claims about the futures of requests: they are the standard library's to whoever uses them."""

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
def test_whoever_waits_is_told_once(end: str, before: bool) -> None:
    """Callbacks, `wait`, `as_completed`, and a thread in `result`, begun before or after the end."""
    promise, other = Promise(), Promise()
    told: list[object] = []
    if before:
        ENDS[end](promise)
    promise.add_done_callback(told.append)
    promise.add_done_callback(told.append)
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
    assert told == [promise] * 2
    assert sorted(map(str, found)) == sorted(map(str, [{promise}, promise, outcome(promise)[0]] * 3))


@pytest.mark.parametrize("end", ENDS)
def test_a_promise_answers_as_the_librarys_future_does(end: str) -> None:
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


def test_an_answer_that_does_not_come_is_waited_for_so_long() -> None:
    with pytest.raises(TimeoutError):
        Promise().result(0.01)
    with pytest.raises(TimeoutError):
        Promise().exception(0)


def test_event_loops_wait_for_promises() -> None:
    async def both() -> object:
        promise = Promise()
        asked = asyncio.wrap_future(promise)
        Thread(target=ENDS["answered"], args=[promise]).start()
        return await asyncio.wait_for(asked, PATIENCE)

    assert asyncio.run(both()) is ANSWER


def test_a_callback_that_fails_keeps_no_other_from_being_called(caplog: pytest.LogCaptureFixture) -> None:
    promise = Promise()
    told: list[object] = []
    promise.add_done_callback(lambda found: found.missing)  # type: ignore[attr-defined]
    promise.add_done_callback(told.append)
    ENDS["answered"](promise)
    assert told == [promise]
    assert "exception calling callback" in caplog.text


@pytest.mark.parametrize("end", ENDS)
def test_who_comes_as_a_promise_ends_is_told(end: str) -> None:
    """`wait` looks at the state first and leaves word then; the promise may end between the two."""
    promise = Promise()
    ENDS[end](promise)
    told: list[object] = []
    promise._waiters.append(
        SimpleNamespace(add_result=told.append, add_exception=told.append, add_cancelled=told.append)
    )
    assert told == [promise]
