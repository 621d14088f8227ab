"""Claims about forks: none comes while another thread is in a section, and none is waited for by the one that forks."""

from __future__ import annotations

from threading import Event, Thread

import pytest
from patience import PATIENCE

from onert.ir.process import forks
from onert.ir.process.forks import Forks, Section


def test_a_fork_waits_until_other_threads_have_left_their_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "LIMIT", PATIENCE)
    found, section, waited, left = Forks(), Section(), Event(), Event()
    found.enter(section)

    class Clock:
        """Tells when the fork waits."""

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


def test_a_thread_does_not_wait_for_sections_of_its_own() -> None:
    found = Forks()
    found.enter(Section())
    found.before()
    found.enter(Section())  # while it forks itself
    found.after_in_parent()
    assert not found._forking


def test_a_child_has_no_sections_of_other_threads() -> None:
    found, own, others = Forks(), Section(), Section()
    found.enter(own)
    other = Thread(target=found.enter, args=(others,))
    other.start()
    other.join(PATIENCE)
    found.after_in_child()
    assert list(found._sections) == [own]
