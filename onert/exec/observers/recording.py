"""The observers that a program's options request, and the files they write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onert.ir import ExecutionError
from onert.ir.process.replacing import replace

from .minmax import MinMax
from .observer import Observer
from .profile import Profile
from .trace import Trace


class ProfileFile(Profile):
    """A profile that is written as a table in Markdown when the execution is closed."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = Path(path)

    def close(self) -> None:
        lines = ["| operation | backend | runs | us | share | GFLOP/s | GB/s |", "|---|---|---:|---:|---:|---:|---:|"]
        for r in self.rows:
            numbers = f"{r.runs} | {r.microseconds:.1f} | {r.share:.1%} | {r.gflops:.2f} | {r.gbytes:.2f}"
            lines.append(f"| {r.label} | {r.backend} | {numbers} |")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace(self._path, ("\n".join((*lines, "")).encode(),))
        except OSError as error:
            raise ExecutionError(f"the table cannot be written to {self._path}: {error.strerror or error}") from error


RECORDERS = {"trace": Trace, "table": ProfileFile, "minmax": MinMax}


def recorders(files: Mapping[str, str]) -> tuple[Observer, ...]:
    """An observer for each kind of file; each is written when the execution is closed or garbage collected."""
    return tuple(RECORDERS[kind](path) for kind, path in files.items())
