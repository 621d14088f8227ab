"""The sizes in docs/bundles.md match those that its command prints within 2 %."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.bundles import text_bytes
from shared_material import REPOSITORY

import onert

from .machines import HOST, needs_compiler

PAGE = (REPOSITORY / "docs" / "bundles.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\w[\w.]*) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
SIZES = {name: tuple(map(int, figures)) for name, *figures in ROW.findall(PAGE)}
MODELS = {
    "digits_float": REPOSITORY / "nnpackage" / "examples" / "digits_float",
    "digits_int8": REPOSITORY / "nnpackage" / "examples" / "digits_int8",
    "lenet_mnist": REPOSITORY / "docs" / "examples" / "lenet" / "lenet_mnist.tflite",
}


@needs_compiler
@pytest.mark.skipif("x86_64" not in HOST.target, reason="the table is for x86-64")
@pytest.mark.parametrize("name", MODELS)
def test_the_documented_sizes_are_accurate(tmp_path: Path, name: str) -> None:
    files = onert.bundle(onert.load(MODELS[name]), tmp_path, cpu="x86-64")
    found = (text_bytes(files.paths["o"]), files.constants, files.mutables, files.activations)
    assert found == pytest.approx(SIZES[name], rel=0.02)
