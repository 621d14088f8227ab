"""Large tables run on a target of each register width, those of one width in turn, and the largest on widths in turn
too; the rest is in the long suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from onert_llvm.target.isa import Isa

from .natively import alike, in_turn

LARGE = 12
"""Rows from which each target of a width has its turn often enough to be held to what the table claims."""
LARGEST = 48
"""Rows from which each width has."""
FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tables: dict[str, dict[tuple[int, ...], list[pytest.Function]]] = {}
    for item in items:
        if item.path.parent == FOLDER and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            row = tuple(id(value) for name, value in item.callspec.params.items() if name != "isa")
            if isinstance(item.callspec.params.get("isa"), Isa) and not item.get_closest_marker("long"):
                tables.setdefault(item.nodeid.partition("[")[0], {}).setdefault(row, []).append(item)
    for table in tables.values():
        if len(table) >= LARGE:
            for position, row_items in enumerate(table.values()):
                widths = alike(row_items, lambda item: item.callspec.params["isa"])
                now = in_turn(position, widths) if len(table) >= LARGEST else [w[position % len(w)] for w in widths]
                for item in row_items:
                    if item not in now:
                        item.add_marker(pytest.mark.long)
