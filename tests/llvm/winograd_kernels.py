"""Winograd kernels wherever they are possible."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest


def winograd_kernels(monkeypatch: pytest.MonkeyPatch, schedule: ModuleType, layers: ModuleType, name: str) -> list[Any]:
    """Use the Winograd kernel of this name in `layers` wherever possible; returns the kernels that were used."""
    taken: list[Any] = []
    made = getattr(layers, name)

    def kernel(*args: object) -> object:
        taken.append(made(*args))
        return taken[-1]

    monkeypatch.setattr(schedule, "_WORTH", 1e9)
    monkeypatch.setattr(layers, name, kernel)
    return taken
