"""The table of planted faults: one file for each package, one row for each fault."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

FOLDER = Path(__file__).resolve().parent / "faults"
NOTICED = FOLDER.parent / "noticed.txt"
"""A line for each fault: its key, and the test that noticed it when last recorded."""
_ARROW = " --> "


@frozen
class Fault:
    """One change to one file, and the tests that must notice it.

    `old` occurs exactly once in the file. `survives` explains why no test can tell the difference; empty if one must.
    """

    package: str
    number: int
    file: str
    breaks: str
    old: str
    new: str
    tests: tuple[str, ...]
    survives: str = ""

    @property
    def name(self) -> str:
        return f"{self.package}-{self.number}"

    @property
    def key(self) -> str:
        """Identifies the row wherever it stands in the table."""
        return f"{self.package}: {self.breaks}"

    def text(self, repository: Path) -> str:
        """The file with the fault in it; ValueError unless the text to replace occurs exactly once."""
        source = (repository / self.file).read_text(encoding="utf-8")
        count = source.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: the text to replace occurs {count} times in {self.file}, expected once")
        return source.replace(self.old, self.new)


def faults(folder: Path = FOLDER) -> tuple[Fault, ...]:
    """All faults, package by package in the order of their files."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        rows = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
        for number, row in enumerate(rows, 1):
            found.append(Fault(path.stem, number, **{**row, "tests": tuple(row["tests"])}))
    return tuple(found)


def noticed(path: Path = NOTICED) -> dict[str, str]:
    """The test that noticed each fault, by the fault's key."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {key: test for key, _, test in (line.partition(_ARROW) for line in lines)}


def record(by: Mapping[str, str], path: Path = NOTICED) -> None:
    """Write which test noticed which fault, in the order of the table; faults without one are omitted."""
    lines = [f"{fault.key}{_ARROW}{by[fault.key]}\n" for fault in faults() if by.get(fault.key)]
    path.write_text("".join(lines), encoding="utf-8")


def summary(table: tuple[Fault, ...]) -> list[str]:
    """The table's summary on the conformance page: faults by package, and those that no test can notice."""
    counts = Counter(fault.package for fault in table)
    rows = [f"| {package} | {count} |" for package, count in sorted(counts.items())]
    listed = [f"- `{fault.file}`: {fault.breaks}. {fault.survives}" for fault in table if fault.survives]
    return ["| table | faults |", "|---|---:|", *rows, f"| all | {len(table)} |", "", *listed]
