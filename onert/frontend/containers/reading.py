"""Access to all models of a container, not only the one that is loaded by default."""

from __future__ import annotations

from pathlib import Path

from onert.frontend.files import open_file
from onert.ir import ModelError

from . import litertlm, task


def models(path: str | Path) -> dict[str, bytes]:
    """The models in a `.litertlm` or `.task` file by name, as bytes for `onert.load`.

    Raises ModelError if the file cannot be read or breaks a rule of its format.
    """
    data = open_file(Path(path)).data
    try:
        found = litertlm.models(data) if bytes(data[:8]) == litertlm.MAGIC else task.models(data)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    return {name: bytes(model) for name, model in found.items()}
