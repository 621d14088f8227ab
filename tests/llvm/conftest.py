"""Large tables run each row on one target per register width, in turn, larger ones on one target, and the largest three
rows out of five; the rest is long.

In all tests, lowered commands declare the memory they touch.
"""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from onert_llvm.command.command import Lowered
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction import float_conv_fc
from onert_llvm.target.isa import Isa

from .accesses import check
from .emulated import UNSUITABLE, install
from .natively import by_width, in_turn

LARGE = 12
"""From this many rows on, taking the targets of a width in turn covers each of them often enough."""
LARGEST = 16
"""From this many rows on, so does taking the widths in turn."""
VAST = 120
"""From this many rows on, which are combinations of few choices, so do three in five: choices rarely come in fives."""
FOLDER = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--emulated", action="store_true", help="emulate AVX-512 targets on a processor with AVX2")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--emulated", default=False):
        install()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--emulated", default=False):
        items[:] = [item for item in items if item.name.partition("[")[0] not in UNSUITABLE]
    tables: dict[str, dict[tuple[int, ...], list[pytest.Function]]] = {}
    for item in items:
        if item.path.parent == FOLDER and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            row = tuple(id(value) for name, value in item.callspec.params.items() if name != "isa")
            if isinstance(item.callspec.params.get("isa"), Isa) and not item.get_closest_marker("long"):
                tables.setdefault(item.nodeid.partition("[")[0], {}).setdefault(row, []).append(item)
    for table in tables.values():
        if len(table) >= LARGE:
            for position, row_items in enumerate(table.values()):
                widths = by_width(row_items, lambda item: item.callspec.params["isa"])
                now = in_turn(position, widths) if len(table) >= LARGEST else [w[position % len(w)] for w in widths]
                if len(table) >= VAST and position % 5 in (1, 4):
                    now = []
                for item in row_items:
                    if item not in now:
                        item.add_marker(pytest.mark.long)


@pytest.fixture(autouse=True)
def accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = Lowering.finish

    @wraps(finish)
    def checked(lowering: Lowering, *made: Any) -> Lowered:
        lowered = finish(lowering, *made)
        check(lowered, lowering.subgraph, lowering.callers)
        return lowered

    monkeypatch.setattr(Lowering, "finish", checked)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Terms]:
    """The kinds of terms of the layers that were lowered."""
    found: list[Terms] = []
    real = float_conv_fc.product

    def product(*args: object, **named: object) -> object:
        made = real(*args, **named)  # type: ignore[arg-type]
        found.append(made.terms)
        return made

    monkeypatch.setattr(float_conv_fc, "product", product)
    return found
