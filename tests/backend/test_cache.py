"""The cache of compiled code keeps what it is given, and only that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

from onert.backend.cache import HEADER, Cache, default_directory
from onert.tools.cache import main


def test_what_is_stored_is_loaded(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "cache")
    key = Cache.key("module", b"target")
    assert cache.load(key) is None
    assert cache.store(key, b"code" * 1000)
    loaded = cache.load(key)
    assert loaded is not None
    assert bytes(loaded) == b"code" * 1000
    assert loaded.readonly


def test_keys_do_not_run_together() -> None:
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


def test_the_longest_unused_entries_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10 * (1000 + HEADER))
    keys = [Cache.key(str(i)) for i in range(10)]
    for age, key in enumerate(keys):
        cache.store(key, bytes(1000))
        os.utime(tmp_path / f"{key}.onert", (age, age))
    assert cache.load(keys[0]) is not None  # used just now
    cache.store(Cache.key("one more"), bytes(1000))
    left = {e.key for e in cache.entries()}
    assert keys[0] in left
    assert keys[1] not in left
    assert sum(e.size for e in cache.entries()) <= cache.limit


def test_what_is_over_the_limit_is_not_kept(tmp_path: Path) -> None:
    assert not Cache(tmp_path, limit=100).store(Cache.key("x"), bytes(100))


def test_a_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file")
    assert not cache.store(Cache.key("x"), b"y")
    assert cache.load(Cache.key("x")) is None
    assert cache.entries() == []


def test_processes_share_a_directory(tmp_path: Path) -> None:
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


def test_the_place_is_the_users_cache_unless_told() -> None:
    assert default_directory({"ONERT_CACHE_DIR": "/a"}) == Path("/a")
    assert default_directory({"XDG_CACHE_HOME": "/b"}) == Path("/b/onert")


def test_the_tool_lists_and_removes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
