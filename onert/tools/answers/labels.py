"""Names of classes."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from onert.frontend.metadata.labels import lines
from onert.ir import ExecutionError
from onert.ir.value import Value

MAX_LABELS_FILE = 1 << 24
METADATA = "the model's metadata"


@frozen
class Labels(Value):
    """Names of the classes 0, 1, ... and where they come from. There may be none."""

    names: tuple[str, ...] = ()
    place: str = METADATA

    def of(self, index: int) -> str:
        """The name of a class, empty without names. Raises ExecutionError if there are names, but not this one."""
        if not self.names:
            return ""
        if not 0 <= index < len(self.names):
            raise ExecutionError(f"{self.place} has {len(self.names)} labels, but the model detected class {index}")
        return self.names[index]


def read_labels(path: Path) -> Labels:
    """Read names, one per line; empty lines at the end are ignored."""
    try:
        if path.stat().st_size > MAX_LABELS_FILE:
            raise ExecutionError(
                f"{path} has {path.stat().st_size} bytes, expected labels of at most {MAX_LABELS_FILE}"
            )
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExecutionError(f"{path} cannot be read as a file of labels: {error}") from error
    names = lines(text)
    if names in ((), ("",)):
        raise ExecutionError(f"{path} has no labels")
    return Labels(names, str(path))
