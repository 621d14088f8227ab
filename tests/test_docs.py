"""The Python code in README and docs runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from shared_material import REPOSITORY

PAGES = [REPOSITORY / "README.md", REPOSITORY / "SECURITY.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SKETCHES = {"architecture.md"}  # shows the form of a declaration, with dots for bodies


WITH_CODE = [p for p in PAGES if p.name not in SKETCHES and _BLOCK.search(p.read_text(encoding="utf-8"))]
SOURCES = [
    pytest.param(page, named, id=f"{page.name} {named}")
    for page in PAGES
    for named in dict.fromkeys(re.findall(r"`([\w./]+/[\w.]+\.(?:py|ll|toml))`", page.read_text(encoding="utf-8")))
]
"""Files named on pages; those of a package may be named relative to one of its folders."""
FILES = [
    p.relative_to(REPOSITORY).as_posix()
    for d in ("onert", "backends", "tests", "docs")
    for p in (REPOSITORY / d).rglob("*")
]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.name)
def test_the_code_of_a_page_runs_from_top_to_bottom(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    names: dict[str, Any] = {"__name__": page.stem}
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page.name} block {number}", "exec"), names)  # raises if it does not run
    assert len(names) > 1


@pytest.mark.parametrize(("page", "named"), SOURCES)
def test_files_named_on_pages_exist(page: Path, named: str) -> None:
    assert any(f"/{file}".endswith(f"/{named}") for file in FILES)
