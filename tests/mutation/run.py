"""Plants one fault at a time in a copy of the repository, runs the tests that must notice it, and counts.

    python tests/mutation/run.py                 # the whole table, two at a time
    python tests/mutation/run.py ir compiler-3   # two packages' worth, or single faults
    python tests/mutation/run.py --record        # and write down which test noticed each

Each worker has its own copy of the tree, which comes first on the import path, and each fault its own empty cache, so
nothing that the original compiled is found. A fault is noticed when pytest fails or takes longer than the limit. The
test that noticed it last time (`noticed.txt`) is run alone first, and those of the row where it is gone or passes. All
tests that noticed something are run on unchanged copies at the end: one that fails there would notice everything.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from mutation.table import Fault, faults, noticed, record, summary

REPOSITORY = Path(__file__).resolve().parent.parent.parent
COPIED = ("onert", "backends", "tests", "docs", "nnpackage", "Makefile", "README.md", "pyproject.toml")
PATIENCE = 30.0
"""Seconds that tests wait for threads and processes before they fail."""
LIMIT = 600.0
"""Seconds after which a run counts as failed."""
ALONE = 200.0
"""Likewise for a test by itself, which takes a few seconds; a fault may let native code spin for ever."""
ENDED_BY_PYTEST = (3, 4, 5)
"""Statuses of an error of pytest's own, wrong usage (a test that is not there among it), and no tests at all."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
_BEGUN = re.compile(r"^(tests/[^ :]+\.py::\S+)", re.MULTILINE)


@frozen
class Outcome:
    """What became of one fault: `noticed` by a failing test or the limit, after so many seconds.

    `by` is the test, empty where none can be told.
    """

    fault: Fault
    noticed: bool
    by: str
    seconds: float


def copy_tree(target: Path) -> None:
    """What tests and imports need of the repository."""
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignore)
        else:
            shutil.copy2(source, target / name)


def pytest(tree: Path, tests: Sequence[str], limit: float, fail_fast: bool = True) -> tuple[int | None, str]:
    """Exit status (None where the limit was reached) and report of the tests, with the tree's own code imported.

    Long tests are left out of files, and run where a single one is named. Where both are, the first that fails decides.
    """
    named = [test for test in tests if "::" in test]
    files = [test for test in tests if "::" not in test]
    status, report = None, ""
    for part, selection in ((files, ["-m", "not long"]), (named, [])):
        if part:
            status, report = _pytest(tree, [*selection, *(["-x"] if fail_fast else []), *part], limit)
            if status != 0:
                break
    return status, report


def _pytest(tree: Path, arguments: Sequence[str], limit: float) -> tuple[int | None, str]:
    shared = Path(os.environ.get("ONERT_SHARED", REPOSITORY.parent / "shared"))
    with tempfile.TemporaryDirectory(prefix="onert-mutation-cache-") as cache:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tree), str(tree / "backends")]),
            "XDG_CACHE_HOME": cache,
            "ONERT_SHARED": str(shared),
            "ONERT_PATIENCE": str(PATIENCE),
        }
        for name in ("ONERT_CACHE_DIR", "PYTHONDONTWRITEBYTECODE"):
            environment.pop(name, None)
        options = ["-v", "-p", "no:cacheprovider", "--tb=line", "--hypothesis-profile=unshrunk"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *arguments],
            cwd=tree,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            report, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)  # pytest and whatever it started
            report, _ = process.communicate()
            return None, report
        return process.returncode, report


@contextmanager
def planted(tree: Path, fault: Fault) -> Iterator[None]:
    """The tree with the fault in it. Compiled files go: two versions may have one size and one time."""
    path = tree / fault.file
    original = path.read_bytes()

    def write(content: bytes) -> None:
        path.write_bytes(content)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    write(fault.text(tree).encode())
    try:
        yield
    finally:
        write(original)


def attempt(tree: Path, fault: Fault, first: str = "", limit: float = LIMIT) -> Outcome:
    """Plant a fault and run one test, where it is given, then those of the row; RuntimeError where no test ran."""
    began = time.monotonic()
    with planted(tree, fault):
        status, report = pytest(tree, [first], min(limit, ALONE)) if first else (0, "")
        if status in (0, *ENDED_BY_PYTEST):
            status, report = pytest(tree, fault.tests, limit)
    if status in ENDED_BY_PYTEST:  # a signal or 2 is the fault's doing
        raise RuntimeError(f"{fault.name}: pytest ended with status {status}:\n{report}")
    by = failed(report) if status != 0 else ""
    return Outcome(fault, status != 0, by, time.monotonic() - began)


def failed(report: str) -> str:
    """The test that failed, or the one that was running where the process ended; empty where there is neither."""
    found = _FAILED.findall(report)[:1] or _BEGUN.findall(report)[-1:]
    return str(found[0]) if found else ""


def baseline(tree: Path, tests: Sequence[str]) -> str:
    """The report of these tests, where they do not pass on the unchanged tree; else nothing."""
    status, report = pytest(tree, tests, 4 * LIMIT, fail_fast=False)
    return "" if status == 0 else report


def run(chosen: Sequence[Fault], jobs: int, before: Mapping[str, str], checked: bool = True) -> list[Outcome]:
    """Every fault's outcome; RuntimeError where a test fails without any fault.

    `before` has the tests that noticed faults before, by the faults' names.
    """
    trees: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="onert-mutation-") as folder, ThreadPoolExecutor(jobs) as workers:
        for worker in range(jobs):
            tree = Path(folder) / f"tree{worker}"
            tree.mkdir()
            copy_tree(tree)
            trees.put(tree)

        def check(part: Sequence[str]) -> str:
            tree = trees.get()
            try:
                return baseline(tree, part)
            finally:
                trees.put(tree)

        def one(fault: Fault) -> Outcome:
            tree = trees.get()
            try:
                outcome = attempt(tree, fault, before.get(fault.name, ""))
            finally:
                trees.put(tree)
            verdict = "noticed " if outcome.noticed else "SURVIVED"
            text = f"{verdict} {fault.name:<16} {outcome.seconds:6.1f} s  {fault.file}: {fault.breaks}"
            print(text, outcome.by and f"({outcome.by})", flush=True)
            return outcome

        outcomes = list(workers.map(one, chosen))
        if checked:
            tests = sorted({test for o in outcomes if o.noticed for test in ((o.by,) if o.by else o.fault.tests)})
            parts = [tests[start::jobs] for start in range(jobs) if tests[start::jobs]]
            for report in workers.map(check, parts):
                if report:
                    raise RuntimeError(f"tests fail without any fault:\n{report}")
        return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="packages (ir) or faults (ir-3); all where none is named")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a fault")
    parser.add_argument("--record", action="store_true", help="write down which test noticed each fault")
    parser.add_argument("--allowed", type=float, default=0.05, help="the part that may survive (0.05)")
    parser.add_argument("--table", action="store_true", help="print what docs/conformance.md says of the table")
    options = parser.parse_args(arguments)
    if options.table:
        print("\n".join(summary(faults())))
        return 0
    chosen = [f for f in faults() if not options.names or {f.package, f.name} & set(options.names)]
    if not chosen:
        parser.error(f"no fault is called {' or '.join(options.names)}")
    began = time.monotonic()
    outcomes = run(chosen, options.jobs, noticed(), checked=not options.unchecked)
    if options.record:
        record({**noticed(), **{o.fault.name: o.by for o in outcomes}})
    survived = [outcome.fault for outcome in outcomes if not outcome.noticed]
    print(f"\n{len(outcomes)} faults, {len(survived)} survived, {time.monotonic() - began:.0f} s")
    for fault in survived:
        print(f"  {fault.name}: {fault.breaks}: {fault.survives or 'NO REASON GIVEN'}")
    unexplained = [fault for fault in survived if not fault.survives]
    return 1 if unexplained or len(survived) > options.allowed * len(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
