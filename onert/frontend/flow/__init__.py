"""Myelin's flow files: each function becomes a subgraph with a signature of its name."""

from __future__ import annotations

from pathlib import Path

from onert.frontend.flatbuffer import Data
from onert.frontend.format import single_model_format
from onert.ir import Subgraphs
from onert.ir.process import imports

MAGIC = b"flow"


def _read(data: Data, path: Path | None) -> tuple[Subgraphs, bool]:
    return imports.module("onert.frontend.flow.model").read_model(data), True


FORMAT = single_model_format("flow", lambda head, path: head.startswith(MAGIC), _read)
