"""The formats of TFLite and circle files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onert.frontend.format import Format, single_model_format
from onert.ir import Subgraphs
from onert.ir.process import imports

from .custom_ops import CUSTOM_OPS

if TYPE_CHECKING:
    from onert.frontend.flatbuffer import Data


_READER = "onert.frontend.tflite_schema.model"


def schema_format(name: str, identifier: bytes) -> Format:
    """The format of files of this schema with the given file identifier (the second four bytes)."""

    def recognize(head: bytes, path: Path | None) -> bool:
        return head[4:8] == identifier

    return single_model_format(name, recognize, _read, lambda path: not CUSTOM_OPS, _READER)


def _read(data: Data, path: Path | None) -> tuple[Subgraphs, bool]:
    found: tuple[Subgraphs, bool] = imports.module(_READER).read_package(data, path)
    return found
