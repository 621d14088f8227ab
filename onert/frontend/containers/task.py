"""MediaPipe's task bundles: zip archives that contain models, distinguished from packages by the suffix `.task`.

A member is a model if its name ends in `.tflite` or begins with `TF_LITE_` (a model type).
"""

from __future__ import annotations

from onert.frontend.flatbuffer import Data
from onert.frontend.format import Format
from onert.frontend.nnpackage.zip_archive import TASK, ZIP, open_zip_archive
from onert.ir import ModelError

from .contained_models import MAX_MODELS, by_name, main_model


def models(data: Data) -> dict[str, Data]:
    """The models by member name. Raises ModelError if the archive breaks the format's rules."""
    archive = open_zip_archive(data)
    names = [name for name in archive.members if name.endswith(".tflite") or name.startswith("TF_LITE_")]
    if len(names) > MAX_MODELS:
        raise ModelError(f"it holds {len(names)} models, more than {MAX_MODELS}")
    return by_name((name, archive.read(name)) for name in names)


FORMAT = Format(
    "task",
    lambda head, path: path is not None and path.suffix == TASK and head.startswith(ZIP),
    lambda data, path: main_model(models(data), path),
)
