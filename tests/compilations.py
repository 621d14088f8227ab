"""Counting compilations."""

from __future__ import annotations

from typing import Any

import pytest

from onert.compiler.compiler import Compilation


def compilations(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The named arguments of every compilation from now on."""
    made: list[dict[str, Any]] = []
    before = Compilation.compiled

    def counted(self: Compilation, *given: Any, **more: Any) -> Any:
        made.append(more)
        return before(self, *given, **more)

    monkeypatch.setattr(Compilation, "compiled", counted)
    return made
