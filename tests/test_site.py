"""The documentation as a site: links lead somewhere, all pages are listed, and it builds without warnings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import screenshots
from shared_material import REPOSITORY

import onert
from onert.ir.process.imports import module

DOCS = REPOSITORY / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "examples" not in page.parts)
CONFIGURATION = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def _name(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("page", [REPOSITORY / "README.md", REPOSITORY / "SECURITY.md", *PAGES], ids=_name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = [link.partition("#")[0] for link in _LINK.findall(text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_screenshots_page_is_up_to_date() -> None:
    assert (DOCS / "screenshots.md").read_text(encoding="utf-8") == screenshots.page()
    assert all((DOCS / "pictures" / f"{each.name}.png").is_file() for each in screenshots.PICTURES)


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/]+\.md", CONFIGURATION.partition("nav:")[2]))
    assert listed == {page.relative_to(DOCS).as_posix() for page in PAGES}


def _documented(page: str) -> list[str]:
    return re.findall(r"^::: (\S+)$", (DOCS / "api" / page).read_text(encoding="utf-8"), re.MULTILINE)


def test_the_reference_covers_the_public_api() -> None:
    assert {name.rpartition(".")[2] for name in _documented("onert.md")} == set(onert.__all__)


@pytest.mark.parametrize("name", [*_documented("onert.md"), *_documented("backends.md"), *_documented("images.md")])
def test_every_name_in_the_reference_exists_and_has_a_docstring(name: str) -> None:
    package, _, last = name.rpartition(".")
    found = getattr(module(package), last, None)
    found = module(name) if found is None else found
    assert (found.__doc__ or "").strip()


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    if not find_spec("mkdocs") or not find_spec("mkdocstrings"):
        pytest.skip("mkdocs is not installed; pip install 'onert-toolkit[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for name in _documented("onert.md"):
        assert f'id="{name}"' in (tmp_path / "api" / "onert" / "index.html").read_text(encoding="utf-8")
