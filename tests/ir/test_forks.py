"""A fork waits for sections of other threads, and never for those of the forking thread."""

from __future__ import annotations

from threading import Event, Thread

import pytest
from patience import PATIENCE

from onert.ir.process import forks
from onert.ir.process.forks import Forks, NoFork


def test_a_fork_waits_until_other_threads_have_left_their_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "LIMIT", PATIENCE)
    found, section, waited, left = Forks(), NoFork(), Event(), Event()
    found.enter(section)

    class Clock:
        """Signals that the fork waits."""

        monotonic = staticmethod(forks.time.monotonic)

        @staticmethod
        def sleep(seconds: float) -> None:
            waited.set()
            left.wait(PATIENCE)

    monkeypatch.setattr(forks, "time", Clock)
    forking = Thread(target=found.before)
    forking.start()
    assert waited.wait(PATIENCE)
    assert forking.is_alive()
    found.leave(section)
    left.set()
    forking.join(PATIENCE)
    assert not forking.is_alive()


def test_a_thread_does_not_wait_for_its_own_sections() -> None:
    found = Forks()
    found.enter(NoFork())
    found.before()
    found.enter(NoFork())  # while this thread forks
    found.after_in_parent()
    assert not found._forking


def test_a_child_process_has_no_sections_of_other_threads() -> None:
    found, own, others = Forks(), NoFork(), NoFork()
    found.enter(own)
    other = Thread(target=found.enter, args=(others,))
    other.start()
    other.join(PATIENCE)
    found.after_in_child()
    assert list(found._sections) == [own]
