"""The state of installed code is identified by the content of its files, however they were changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from onert.backend import cache
from onert.backend.cache import _SETTLED, _row, installed, recorded, sources, worked_on

CONTENT = "x = 1\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of two files."""
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "module.py").write_text(CONTENT)
    return package


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock ahead so that all files appear to have been changed long ago."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 2 * _SETTLED)


def in_place(package: Path) -> None:
    """Same size and modification time: only the change time, which cannot be set, differs."""
    file = package / "inner" / "module.py"
    status = file.stat()
    file.write_text("x = 2\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def replaced(package: Path) -> None:
    file = package / "inner" / "module.py"
    status = file.stat()
    (package / "new").write_text("x = 2\n")
    os.utime(package / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    (package / "new").rename(file)


def longer(package: Path) -> None:
    (package / "inner" / "module.py").write_text("x = 12\n")


def moved(package: Path) -> None:
    (package / "inner" / "module.py").rename(package / "module.py")


def added(package: Path) -> None:
    (package / "data.ll").write_text("")


def removed(package: Path) -> None:
    (package / "__init__.py").unlink()


def divided(package: Path) -> None:
    """The same bytes in the same order, split differently into files."""
    (package / "inner" / "module.py").write_text("x = ")
    (package / "inner" / "module_.py").write_text("1\n")


CHANGES = [in_place, replaced, longer, moved, added, removed, divided]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.usefixtures("later")
def test_every_change_changes_the_identification(change: Callable[[Path], None], package: Path) -> None:
    before = worked_on(package), sources(package)
    assert (worked_on(package), sources(package)) == before
    change(package)
    assert worked_on(package) != before[0]
    assert sources(package) != before[1]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_right_after_another_is_detected(change: Callable[[Path], None], package: Path) -> None:
    before = worked_on(package)  # the next change could get the same timestamp
    change(package)
    assert worked_on(package) != before


def test_a_digest_depends_only_on_content(package: Path, tmp_path: Path) -> None:
    before = sources(package)
    os.utime(package / "inner" / "module.py", ns=(0, 0))
    assert sources(package) == before
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "module.pyc").write_bytes(b"x")
    assert sources(package) == before
    package.rename(tmp_path / "elsewhere")
    assert sources(tmp_path / "elsewhere") == before


@pytest.mark.usefixtures("later")
def test_files_not_changed_recently_are_not_read(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(path: str) -> bytes:
        raise AssertionError(path)

    monkeypatch.setattr(cache, "_content", never)
    before = worked_on(package)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "module.pyc").write_bytes(b"x")
    assert worked_on(package) == before


def test_an_installed_package_is_identified_by_its_record(package: Path) -> None:
    without = installed(package, "the_package")
    found = [without]
    for version, record in (("1.0", "a"), ("1.0", "b"), ("1.1", "b")):
        folder = package.parent / f"the_package-{version}.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "RECORD").write_text(record)
        found.append(installed(package, "the_package"))
    assert len(set(found)) == 4
    assert without == sources(package)


def test_a_record_gives_the_same_digest_as_the_files_it_lists(package: Path) -> None:
    """As in wheels: a kernel library is built in a source tree and used where the package is installed."""
    whole = sources(package)
    assert recorded(package, "the_package") == whole  # there is no record
    rows = [f"package/{name},{_row((package / name).read_bytes())}" for name in ("inner/module.py", "__init__.py")]
    others = ["package/__pycache__/__init__.cpython-311.pyc,,", "another/module.py,sha256=x,1", "record,,"]
    folder = package.parent / "the_package-1.0.dist-info"
    folder.mkdir()
    (folder / "RECORD").write_text("\n".join([*others, *rows]))
    assert recorded(package, "the_package") == whole
    (folder / "RECORD").write_text("\n".join([*others, *rows, "package/more.py,sha256=x,1"]))
    assert recorded(package, "the_package") != whole


def test_a_row_of_a_record_has_the_format_of_installers() -> None:
    assert _row(b"") == "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0"
