"""Which tests execute a line of the code that changes are drawn from, measured once per test file and cached.

A test file is measured again when it or the code has changed. What tests execute in other processes is not measured.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

from attrs import frozen

REPOSITORY = Path(__file__).resolve().parent.parent.parent
MEASURED = ("onert/ir", "onert/compiler")
TESTS = (
    "tests/compiler", "tests/ir", "tests/control", "tests/ops", "tests/runtime", "tests/exec", "tests/backend",
    "tests/frontend",
)  # fmt: skip
"""Folders of tests that are measured: those that run this code in their own process."""
LIMIT = 900.0
"""Seconds for one test file."""
START = 3.0
"""Start-up seconds charged to each test file in addition to its tests' times."""


@frozen
class Reached:
    """The tests of one file with their processor seconds, and the indices of those that execute each line."""

    tests: tuple[tuple[str, float], ...]
    lines: Mapping[str, Mapping[int, tuple[int, ...]]]

    @classmethod
    def read(cls, path: Path) -> Reached | None:
        """The cached measurement; None if it cannot be read."""
        try:
            found: Any = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        lines = {f: {int(line): tuple(tests) for line, tests in each.items()} for f, each in found["lines"].items()}
        return cls(tuple((name, float(seconds)) for name, seconds in found["tests"]), lines)

    def of(self, file: str, lines: Collection[int] | None) -> list[tuple[str, float]]:
        """The tests that execute one of these lines (any line of the file if None), the fastest first."""
        own = self.lines.get(file, {})
        numbers = {test for line in (own if lines is None else lines) for test in own.get(line, ())}
        return sorted((self.tests[number] for number in numbers), key=lambda test: test[1])


def measured(jobs: int, tests: Iterable[str] = TESTS) -> dict[str, Reached]:
    """What every test file executes, by its path; measures the files without a cached result."""
    code = _digest(path for folder in MEASURED for path in sorted((REPOSITORY / folder).rglob("*.py")))
    files = [path for folder in tests for path in sorted((REPOSITORY / folder).rglob("test_*.py"))]
    with ThreadPoolExecutor(jobs) as workers:
        found = workers.map(lambda path: _file(path, code), files)
        return {
            str(path.relative_to(REPOSITORY)): each for path, each in zip(files, found, strict=True) if each is not None
        }


def chosen(
    reached: Mapping[str, Reached], file: str, lines: Collection[int], first: Sequence[str], seconds: float
) -> list[str]:
    """Tests that execute these lines, up to `seconds` in total, those of the files `first` first.

    Lines that only run on import count as reached by any test that executes another line of their file.
    """
    for wanted in (lines, None):
        mine = {path: each.of(file, wanted) for path, each in reached.items()}
        order = [path for path in (*first, *sorted(set(mine) - {*first})) if mine.get(path)]
        if order:
            return list(_within((mine[path] for path in order if path in first), seconds / 2)) + list(
                _within((mine[path] for path in order if path not in first), seconds / 2)
            )
    return []


def _within(each: Iterable[Sequence[tuple[str, float]]], seconds: float) -> Iterator[str]:
    """The first test of every file, then the second of every file, and so on while time remains."""
    started: set[int] = set()
    for row in zip_longest(*each):
        for at, test in enumerate(row):
            if test is None:
                continue
            seconds -= test[1] + (0.0 if at in started else START)
            started.add(at)
            if seconds < 0:
                return
            yield test[0]


def _digest(paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _file(path: Path, code: str) -> Reached | None:
    """What one test file executes; None if the cached result cannot be read."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onert-mutation"
    home.mkdir(parents=True, exist_ok=True)
    cached = home / f"{path.stem}-{_digest([path])[:16]}-{code[:16]}.json"
    if not cached.exists():
        _measure(path, cached)
    return Reached.read(cached)


def _measure(path: Path, cached: Path) -> None:
    written = cached.with_suffix(f".{os.getpid()}")
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent),
        "ONERT_REACH": str(written),
        "ONERT_REACHED": os.pathsep.join(MEASURED),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "reach_plugin", "-p", "no:cacheprovider", "-m", "not long"]
    command += ["-n", "0", "--hypothesis-profile=unshrunk", str(path.relative_to(REPOSITORY))]
    try:
        subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, timeout=LIMIT, check=False)
        written.replace(cached)
    except (subprocess.TimeoutExpired, FileNotFoundError):
        print(f"{path.relative_to(REPOSITORY)}: what it executes is not known", flush=True)
        cached.write_text(json.dumps({"tests": [], "lines": {}}), encoding="utf-8")
