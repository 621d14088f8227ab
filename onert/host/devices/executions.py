"""The executions of a program: one for requests without a session, and one for each session."""

from __future__ import annotations

from collections.abc import Callable

from onert.backend import Program
from onert.exec import Execution
from onert.host.device_manager import is_stateful


class Executions:
    """Executions of a program, created by `made`; those of sessions when they are first needed."""

    def __init__(self, program: Program, made: Callable[[Program], Execution] = Execution) -> None:
        self.program = program
        self._made = made
        self._plain = made(program)
        self._stateful = is_stateful(program)
        self._sessions: dict[int, Execution] = {}

    def of(self, session: int | None) -> Execution:
        """The execution for a run, with a session's state or (None) with fresh state."""
        if session is None:
            if self._stateful:
                self._plain.reset_variables()
            return self._plain
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = self._made(self.program)
        return found

    def end(self, session: int) -> None:
        """Drop a session."""
        self._sessions.pop(session, None)
