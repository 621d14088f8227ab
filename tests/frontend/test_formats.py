"""Installed third-party formats: consulted for files that none of the built-in formats recognises."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.frontend import format as formats
from onert.frontend.nnpackage import zip_archive
from onert.ir import ModelError

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"
SCALES = """
import json
from onert.frontend.registry import Format
from onert.ir import DType, ModelError, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

asked = []

def recognize(head, path):
    asked.append(bytes(head))
    return head.startswith(b"SCALE")

def load(content, path):
    try:
        factor = json.loads(bytes(content[5:]))
    except ValueError as error:
        raise ModelError(f"the factor cannot be read: {error}") from error
    import numpy as np
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (3,)), "x")
    return Package((b.model([b.add(Binary(BinaryKind.MUL), x, b.constant(np.float32(factor)))]),))

FORMAT = Format("scale", recognize, load)
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a distribution of one module that registers formats by entry point."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def make(distribution: str, code: str, **entries: str) -> None:
        folder = tmp_path / "site" / f"{distribution}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder.parent / f"{distribution}.py").write_text(code)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = [f"{name} = {distribution}:{attribute}" for name, attribute in entries.items()]
        (folder / "entry_points.txt").write_text("\n".join([f"[{formats.GROUP}]", *lines, ""]))

    return make


def run(source: Path | bytes) -> list[float]:
    (out,) = onert.Execution(onert.compile(onert.load(source))).run([np.float32([1, 2, 3])]).values()
    found: list[float] = out.tolist()
    return found


def test_a_third_party_format_is_read_and_run(install: Install, tmp_path: Path) -> None:
    install("scales_one", SCALES, scale="FORMAT")
    file = tmp_path / "model.scale"
    file.write_bytes(b"SCALE2.5")
    assert run(file) == run(b"SCALE2.5") == [2.5, 5.0, 7.5]
    assert onert.load(file).name == "model"


def test_a_third_party_format_is_consulted_last_and_receives_the_first_bytes(install: Install) -> None:
    install("scales_two", SCALES, scale="FORMAT")
    onert.load(DIGITS)
    with pytest.raises(ModelError, match=r"begins with b'nothing ', expected one of the formats .*nnpackage.*, scale$"):
        onert.load(b"nothing that anyone knows")
    import scales_two  # type: ignore[import-not-found]

    assert scales_two.asked == [b"nothing that any"]  # nothing of the package, which a built-in format recognised


def test_an_error_of_a_third_party_format_names_the_file(install: Install, tmp_path: Path) -> None:
    install("scales_three", SCALES, scale="FORMAT")
    file = tmp_path / "broken.scale"
    file.write_bytes(b"SCALEx")
    with pytest.raises(ModelError, match=r"broken\.scale: the factor cannot be read"):
        onert.load(file)


@pytest.mark.parametrize(
    ("name", "code"), [("broken_import", "import nowhere_at_all"), ("broken_attribute", "OTHER = 1")]
)
def test_a_format_that_cannot_be_imported_is_named(install: Install, name: str, code: str) -> None:
    install(name, code, broken="FORMAT")
    with pytest.raises(ModelError, match=r"the model format 'broken' at broken_.* cannot be loaded"):
        onert.load(b"nothing that anyone knows")
    assert onert.load(DIGITS).models  # built-in formats are read without looking for others


def test_an_archive_may_not_unpack_to_more_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "digits.nnpkg"
    paths = sorted(p for p in DIGITS.rglob("*") if p.is_file())
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in paths:
            archive.write(path, str(path.relative_to(DIGITS)))
    manifest = json.loads((DIGITS / "metadata" / "MANIFEST").read_text())
    largest = (DIGITS / manifest["models"][0]).stat().st_size
    monkeypatch.setattr(zip_archive, "RATIO", 0)
    monkeypatch.setattr(zip_archive, "FLOOR", sum(path.stat().st_size for path in paths))
    assert onert.load(file).models == onert.load(DIGITS).models
    monkeypatch.setattr(zip_archive, "FLOOR", largest - 1)
    with pytest.raises(ModelError, match=f"unpacks to {largest} bytes.* may unpack to {largest - 1}"):
        assert onert.load(file).models
