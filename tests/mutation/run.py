"""Plants one fault at a time in a copy of the repository, runs the tests that must notice it, and counts.

    python tests/mutation/run.py                 # the whole table, two at a time
    python tests/mutation/run.py ir compiler-3   # one package's faults, and a single one
    python tests/mutation/run.py --record        # and record which test noticed each
    python tests/mutation/run.py --new --record  # only faults without a recorded test

Each worker has its own copy of the tree, which comes first on the import path, and each fault its own empty cache, so
that nothing compiled from the original is found. A fault is noticed when pytest fails or exceeds a limit. The test that
noticed it last time (`noticed.txt`) runs alone first; if it is gone or passes, the row's tests run. At the end all
tests that noticed a fault run on unchanged copies, because a test that fails there would notice everything; those that
ended at a limit get the same limit there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
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
PATIENCE = 10.0
"""Seconds that tests wait for threads and processes before they fail while a fault is planted."""


@frozen
class Limits:
    """Limits after which a run counts as failed: wall-clock seconds, and processor seconds of each process."""

    seconds: float = 600.0
    processor: int = 600


ALONE = Limits(120.0, 30)
"""For a single test, which takes a few seconds; a fault may make native code loop forever."""
ENDED_BY_PYTEST = (3, 4, 5)
"""Exit statuses for pytest's internal errors, wrong usage (including a missing test), and no tests at all."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
_BEGUN = re.compile(r"^(tests/[^ :]+\.py::[\w:]+(?:\[.*?\](?= |$))?)", re.MULTILINE)


@frozen
class Outcome:
    """What became of one fault: `noticed` by a failing test or a limit, after `seconds`.

    `by` is the test, empty if unknown. `limits` are the ones it exceeded, None if it exceeded none.
    """

    fault: Fault
    noticed: bool
    by: str
    seconds: float
    limits: Limits | None = None


def copy_tree(target: Path) -> None:
    """Copy what tests and imports need of the repository."""
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignore)
        else:
            shutil.copy2(source, target / name)


def pytest(
    tree: Path, tests: Sequence[str], limits: Limits | None = None, has_fault: bool = True
) -> tuple[int | None, str]:
    """Exit status (None if a limit was exceeded) and report of the tests, run against the tree's own code.

    Tests marked long are skipped in files but run if named individually. If both are given, the first failure decides.
    """
    named = [test for test in tests if "::" in test]
    files = [test for test in tests if "::" not in test]
    status, report = None, ""
    for part, selection in ((files, ["-m", "not long"]), (named, [])):
        if part:
            status, report = _pytest(tree, [*selection, *(["-x"] if has_fault else []), *part], limits, has_fault)
            if status != 0:
                break
    return status, report


def _pytest(tree: Path, arguments: Sequence[str], limits: Limits | None, has_fault: bool) -> tuple[int | None, str]:
    shared = Path(os.environ.get("ONERT_SHARED", REPOSITORY.parent / "shared"))
    with tempfile.TemporaryDirectory(prefix="onert-mutation-cache-") as cache:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tree), str(tree / "backends")]),
            "XDG_CACHE_HOME": cache,
            "ONERT_SHARED": str(shared),
        }
        for name in ("ONERT_CACHE_DIR", "ONERT_PATIENCE", "PYTHONDONTWRITEBYTECODE"):
            environment.pop(name, None)
        if has_fault:
            environment["ONERT_PATIENCE"] = str(PATIENCE)
        bounded = [] if limits is None else ["sh", "-c", 'ulimit -t "$0"; exec "$@"', str(limits.processor)]
        options = ["-v", "-p", "no:cacheprovider", "--tb=line", "--hypothesis-profile=unshrunk"]
        process = subprocess.Popen(
            [*bounded, sys.executable, "-m", "pytest", *options, *arguments],
            cwd=tree,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            report, _ = process.communicate(timeout=None if limits is None else limits.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # pytest and whatever it started
            report, _ = process.communicate()
            return None, report
        spent = process.returncode in (-signal.SIGKILL, -signal.SIGXCPU)
        return None if spent and limits is not None else process.returncode, report


@contextmanager
def planted(tree: Path, fault: Fault) -> Iterator[None]:
    """The tree with the fault in it. Removes compiled files, because two versions may have the same size and time."""
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


def attempt(tree: Path, fault: Fault, first: str = "") -> Outcome:
    """Plant a fault and run the test `first` if given, then those of the row; RuntimeError if no test ran."""
    began, limits = time.monotonic(), ALONE
    with planted(tree, fault):
        status, report = pytest(tree, [first], limits) if first else (0, "")
        if status == 0 or _ran_nothing(status, report):
            limits = Limits()
            status, report = pytest(tree, fault.tests, limits)
    if _ran_nothing(status, report):  # a signal or status 2 is caused by the fault
        raise RuntimeError(f"{fault.name}: pytest ended with status {status}:\n{report}")
    by = failed(report) if status != 0 else ""
    return Outcome(fault, status != 0, by, time.monotonic() - began, limits if status is None else None)


def _ran_nothing(status: int | None, report: str) -> bool:
    """Whether pytest ended for a reason of its own, and not because a test file can no longer be imported."""
    return status in ENDED_BY_PYTEST and "ERROR collecting" not in report


def failed(report: str) -> str:
    """The test that failed, or the one that was running when the process ended; empty if there is neither."""
    found = _FAILED.findall(report)[:1] or _BEGUN.findall(report)[-1:]
    return str(found[0]) if found else ""


def baseline(tree: Path, tests: Sequence[str], limits: Limits | None = None) -> str:
    """The report of these tests if they fail on the unchanged tree, else the empty string."""
    status, report = pytest(tree, tests, limits, has_fault=False)
    return "" if status == 0 else report


def run(chosen: Sequence[Fault], jobs: int, before: Mapping[str, str], checked: bool = True) -> list[Outcome]:
    """Every fault's outcome; RuntimeError if a test fails without any fault.

    `before` maps faults' keys to the tests that noticed them before.
    """
    trees: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="onert-mutation-") as folder, ThreadPoolExecutor(jobs) as workers:
        for worker in range(jobs):
            tree = Path(folder) / f"tree{worker}"
            tree.mkdir()
            copy_tree(tree)
            trees.put(tree)

        def check(part: Sequence[str], limits: Limits | None = None) -> str:
            tree = trees.get()
            try:
                return baseline(tree, part, limits)
            finally:
                trees.put(tree)

        def one(fault: Fault) -> Outcome:
            tree = trees.get()
            try:
                outcome = attempt(tree, fault, before.get(fault.key, ""))
            finally:
                trees.put(tree)
            verdict = "noticed " if outcome.noticed else "SURVIVED"
            text = f"{verdict} {fault.name:<16} {outcome.seconds:6.1f} s  {fault.file}: {fault.breaks}"
            print(text, outcome.by and f"({outcome.by})", flush=True)
            return outcome

        outcomes = list(workers.map(one, chosen))
        if checked:
            tests = sorted({test for o in outcomes if o.noticed for test in _noticing(o)})
            parts = [(tests[start::jobs], None) for start in range(jobs) if tests[start::jobs]]
            late = [(_noticing(o), o.limits) for o in outcomes if o.limits is not None]
            for report in workers.map(check, *zip(*parts, *late, strict=True)):
                if report:
                    raise RuntimeError(f"tests fail without any fault:\n{report}")
        return outcomes


def _noticing(outcome: Outcome) -> tuple[str, ...]:
    """The test that noticed the fault; those of the row if unknown."""
    return (outcome.by,) if outcome.by else outcome.fault.tests


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="packages (ir) or faults (ir-3); default: all")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="number of parallel workers (default: 2)")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a fault")
    parser.add_argument("--new", action="store_true", help="only faults that noticed.txt does not list")
    parser.add_argument("--record", action="store_true", help="record which test noticed each fault")
    parser.add_argument("--allowed", type=float, default=0.05, help="the fraction that may survive (default: 0.05)")
    parser.add_argument("--table", action="store_true", help="print the table's summary for docs/conformance.md")
    options = parser.parse_args(arguments)
    if options.table:
        print("\n".join(summary(faults())))
        return 0
    before = noticed()
    chosen = [f for f in faults() if not options.names or {f.package, f.name} & set(options.names)]
    if not chosen:
        parser.error(f"no fault is called {' or '.join(options.names)}")
    if options.new:
        chosen = [f for f in chosen if f.key not in before and not f.survives]
    began = time.monotonic()
    outcomes = run(chosen, options.jobs, before, checked=not options.unchecked)
    if options.record:
        record({**noticed(), **{o.fault.key: o.by for o in outcomes}})
    survived = [outcome.fault for outcome in outcomes if not outcome.noticed]
    print(f"\n{len(outcomes)} faults, {len(survived)} survived, {time.monotonic() - began:.0f} s")
    for fault in survived:
        print(f"  {fault.name}: {fault.breaks}: {fault.survives or 'NO REASON GIVEN'}")
    unexplained = [fault for fault in survived if not fault.survives]
    return 1 if unexplained or len(survived) > options.allowed * len(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
