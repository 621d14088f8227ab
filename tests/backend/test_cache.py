"""The cache of compiled code returns what was stored, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from patience import PATIENCE
from shared_material import REPOSITORY

import onert
from onert.backend.cache import DEFAULT_LIMIT, HEADER, Cache, Limits, default_directory
from onert.backend.writers import WRITERS
from onert.tools.cache import main


def test_a_stored_entry_is_loaded(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "cache")
    key = Cache.key("module", b"target")
    assert cache.load(key) is None
    assert cache.store(key, b"code" * 1000)
    loaded = cache.load(key)
    assert loaded is not None
    assert bytes(loaded) == b"code" * 1000
    assert loaded.readonly


def test_whether_there_are_entries_is_known_without_reading_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, seen = Cache(tmp_path / "cache"), list[str]()
    assert not cache.has_entries
    for number in range(50):
        cache.store(Cache.key(str(number)), b"code")
    scandir = os.scandir

    @contextmanager
    def noted(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
        with scandir(folder) as found:
            yield (seen.append(item.name) or item for item in found)

    monkeypatch.setattr(os, "scandir", noted)
    assert cache.has_entries
    assert len(seen) == 1
    assert len(cache.entries()) == 50


def test_keys_of_equal_concatenations_differ() -> None:
    assert Cache.key("ab", "c") != Cache.key("a", "bc")


@pytest.mark.parametrize("damage", ["cut", "flip", "foreign", "empty"])
def test_a_damaged_entry_is_ignored_and_removed(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path)
    key = Cache.key("x")
    cache.store(key, b"payload")
    path = tmp_path / f"{key}.onert"
    raw = bytearray(path.read_bytes())
    if damage == "flip":
        raw[HEADER] ^= 1
    path.write_bytes({"cut": raw[:-2], "flip": raw, "foreign": b"something else" * 9, "empty": b""}[damage])
    assert cache.load(key) is None
    assert cache.store(key, b"payload")
    assert cache.load(key) == b"payload"


def test_the_least_recently_used_entries_are_evicted_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10 * (1000 + HEADER))
    keys = [Cache.key(str(i)) for i in range(10)]
    for age, key in enumerate(keys):
        cache.store(key, bytes(1000))
        os.utime(tmp_path / f"{key}.onert", (age, age))
    assert cache.load(keys[0]) is not None  # makes it the most recently used
    cache.store(Cache.key("one more"), bytes(1000))
    left = {e.key for e in cache.entries()}
    assert keys[0] in left
    assert keys[1] not in left
    assert sum(e.size for e in cache.entries()) <= (cache.limit or DEFAULT_LIMIT)


def test_the_directory_is_scanned_once_per_share_of_the_limit_and_stays_near_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans, evict = list[None](), Cache.evict
    monkeypatch.setattr(Cache, "evict", lambda cache: (scans.append(None), evict(cache)))
    entry = 200 + HEADER
    cache = Cache(tmp_path, limit=1000 * entry)
    for number in range(2000):
        cache.store(Cache.key(str(number)), bytes(200))
        assert number % 50 or sum(e.size for e in cache.entries()) <= (1 + 1 / 16) * 1000 * entry
    assert 64 < len(scans) < 256


def test_abandoned_temporary_files_are_removed_and_recent_ones_kept(tmp_path: Path) -> None:
    old, recent = tmp_path / ".new-1", tmp_path / ".new-2"
    for path in (old, recent):
        path.write_bytes(b"unfinished")
    os.utime(old, (0, 0))
    Cache(tmp_path).evict()
    assert not old.exists()
    assert recent.exists()


def test_an_entry_over_the_limit_is_not_stored(tmp_path: Path) -> None:
    assert not Cache(tmp_path, limit=100).store(Cache.key("x"), bytes(100))


def test_a_directory_that_cannot_be_created_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file")
    assert not cache.store(Cache.key("x"), b"y")
    assert cache.load(Cache.key("x")) is None
    assert cache.entries() == []


def test_several_processes_can_share_a_directory(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from onert.backend.cache import Cache\n"
        "c = Cache(Path(sys.argv[1]), limit=20 * 2064)\n"
        "for i in range(200):\n"
        "    k = Cache.key(str(i % 30)); found = c.load(k)\n"
        "    assert found is None or bytes(found) == bytes([i % 30]) * 2000\n"
        "    c.store(k, bytes([i % 30]) * 2000)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(3)]
    assert [p.wait(PATIENCE) for p in running] == [0, 0, 0]
    assert not list(tmp_path.glob(".new-*"))


def test_the_default_directory_is_in_the_users_cache() -> None:
    assert default_directory({"ONERT_CACHE_DIR": "/a"}) == Path("/a")
    assert default_directory({"XDG_CACHE_HOME": "/b"}) == Path("/b/onert")


def test_the_tool_lists_and_removes_entries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = Cache(tmp_path)
    keys = [Cache.key(str(i)) for i in range(3)]
    for key in keys:
        cache.store(key, b"x")
    assert main(["--directory", str(tmp_path), "ls"]) == 0
    assert "3 entries" in capsys.readouterr().out
    assert main(["--directory", str(tmp_path), "rm", keys[0][:16]]) == 0
    assert {e.key for e in cache.entries()} == set(keys[1:])
    assert main(["--directory", str(tmp_path), "rm", "--all"]) == 0
    assert cache.entries() == []
    assert main(["--directory", str(tmp_path), "rm"]) == 2


# ---- labels and limits


def test_a_label_is_stored_with_the_payload(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    keys = [Cache.key(str(i)) for i in range(3)]
    assert cache.store(keys[0], b"one", b"two", label="program\tmodel\tbackends=llvm")
    assert cache.store(keys[1], b"payload")
    assert cache.store(keys[2], b"payload", label="x" * 99_999)
    assert [cache.label(key) for key in keys] == ["program\tmodel\tbackends=llvm", "", ""]
    assert [cache.load(key) for key in keys] == [b"onetwo", b"payload", b"payload"]
    assert cache.label("none") == ""
    (tmp_path / f"{keys[0]}.onert").write_bytes(b"something else")
    assert cache.label(keys[0]) == ""


def test_an_entry_with_a_changed_label_is_not_loaded(tmp_path: Path) -> None:
    cache, key = Cache(tmp_path), Cache.key("x")
    cache.store(key, b"payload", label="name")
    path = tmp_path / f"{key}.onert"
    path.write_bytes(path.read_bytes()[:-1] + b"E")
    assert cache.load(key) is None


def test_limits_of_a_directory_apply_to_every_writer(tmp_path: Path) -> None:
    entry = 1000 + HEADER
    for age in range(4):
        key = Cache.key(str(age))
        Cache(tmp_path).store(key, bytes(1000))
        used = time.time() - 100 * (age + 1)
        os.utime(tmp_path / f"{key}.onert", (used, used))
    Cache(tmp_path).set_limits(Limits(10 * entry, 250))
    assert {e.key for e in Cache(tmp_path).entries()} == {Cache.key("0"), Cache.key("1")}
    Cache(tmp_path).set_limits(Limits(2 * entry, None))
    for new in range(4):
        assert Cache(tmp_path).store(Cache.key(f"new {new}"), bytes(1000))
    assert sum(e.size for e in Cache(tmp_path).entries()) <= 2 * entry
    assert not Cache(tmp_path).store(Cache.key("large"), bytes(3 * entry))
    assert Cache(tmp_path).limits() == Limits(2 * entry, None)


@pytest.mark.parametrize("words", ["size many", "size", "size -1 age -5", "size 1e400", "\0" * 10, "age nan", ""])
def test_unreadable_limits_are_ignored(tmp_path: Path, words: str) -> None:
    (tmp_path / "limits").write_text(words)
    assert Cache(tmp_path).limits() == Limits()
    assert Cache(tmp_path).store(Cache.key("x"), b"y")


def test_programs_are_listed_with_their_models_and_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path))
    package = onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_float")
    monkeypatch.setattr("onert.compiler.program_cache.other_shapes.WORTH_CACHING", 0.0)
    onert.compile(package, executor="Dataflow")
    WRITERS.finish()
    (program,) = [entry for entry in onert.cache.entries() if entry.kind == "program"]
    assert (program.name, program.options[1:]) == ("digits_float", ("executor='Dataflow'",))
    assert program.options[0].startswith("backends=llvm")
    assert main(["ls"]) == 0
    assert f"digits_float  {program.options[0]}  executor='Dataflow'" in capsys.readouterr().out
    assert main(["ls", "--all"]) == 0
    assert "(code)" in capsys.readouterr().out
    assert onert.cache.directory() == tmp_path
    assert onert.cache.remove([program.key]) == 1
    assert onert.cache.remove() > 0
    assert onert.cache.entries() == []


def test_limits_can_be_set_in_python_and_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path / "new"))
    assert onert.cache.limits() == Limits(2 << 30, None)
    assert main(["limit", "--size", "64M", "--age", "30d"]) == 0
    assert capsys.readouterr().out == f"at most 64.0 MiB, unused for at most 30d, in {tmp_path / 'new'}\n"
    assert onert.cache.limits() == Limits(64 << 20, 30 * 86400.0)
    assert onert.cache.set_limits(size=1 << 30, age=float("inf")) == Limits(1 << 30, None)
    assert main(["limit"]) == 0
    assert "at most 1.0 GiB, unused for any time" in capsys.readouterr().out
    with pytest.raises(onert.ExecutionError, match="size is -1, expected at least 0"):
        onert.cache.set_limits(size=-1)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(onert.ExecutionError, match="file cannot be written to: "):
        onert.cache.set_limits(size=1, place=tmp_path / "file")
