"""The public interface is listed, documented and typed."""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from shared_material import REPOSITORY
from surface import API, CONTRACTS, described, lines, names, value

MODULES = (*API, *CONTRACTS)
PUBLIC = [(module, name, found) for module in MODULES for name, found in described(module)]


def _functions(found: Any) -> list[tuple[str, Callable[..., Any]]]:
    """A function itself, or the public methods that a class defines."""
    if not inspect.isclass(found):
        return [("", found)]
    own = ((n, getattr(m, "__func__", m)) for n, m in vars(found).items() if not n.startswith("_"))
    return [(n, m) for n, m in own if inspect.isfunction(m)]


def test_the_page_is_up_to_date() -> None:
    assert (REPOSITORY / "docs" / "surface.md").read_text(encoding="utf-8").splitlines() == list(lines())


@pytest.mark.parametrize("module", MODULES)
def test_public_names_exist_and_are_listed_once(module: str) -> None:
    found = names(module)
    assert found
    for name in found:
        assert not name.startswith("_")
        value(module, name)
    listed = getattr(importlib.import_module(module), "__all__", None)
    assert listed is None or len(set(listed)) == len(listed)


@pytest.mark.parametrize(("module", "name", "found"), PUBLIC, ids=[f"{module}.{name}" for module, name, _ in PUBLIC])
def test_public_classes_and_functions_are_documented_and_typed(module: str, name: str, found: Any) -> None:
    assert len((found.__doc__ or "").split()) >= 2, f"{module}.{name} has no docstring"
    for method, function in _functions(found):
        untyped = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.annotation is inspect.Parameter.empty and p.name not in ("self", "cls")
        ]
        assert untyped == [], f"{module}.{name}.{method} leaves parameters without a type"
        assert inspect.signature(function).return_annotation is not inspect.Signature.empty, f"{name}.{method}"


def test_all_entry_point_groups_are_on_the_page() -> None:
    groups = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    said = " ".join(CONTRACTS.values())
    assert all(f"`{group}`" in said for group in groups)
