"""Packages: directories and zips read the same, models feed one another, and malformed packages are refused."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import litert_peer as litert
import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.frontend.nnpackage.test_case import test_case as read_test_case
from onert.ir import CallTypes, DType, ModelError, TensorType

DIGITS = REPOSITORY / "nnpackage/examples/digits_float"
_F32 = TensorType(DType.FLOAT32, (1, 3))


def _add(value: float) -> bytes:
    types = CallTypes((_F32, TensorType(DType.FLOAT32, (3,))), (_F32,))
    return litert.one_operator("ADD", ("AddOptions", {}), types, {1: np.full(3, value, np.float32)})


def _both() -> bytes:
    return litert.one_operator("MUL", ("MulOptions", {}), CallTypes((_F32, _F32), (_F32,)), {})


def _write(folder: Path, models: dict[str, bytes], config: str = "", **manifest: Any) -> Path:
    """A package of these models."""
    (folder / "metadata").mkdir(parents=True)
    for name, content in models.items():
        (folder / name).write_bytes(content)
    keys = {"major-version": "1", "minor-version": "3", "patch-version": "0", "models": list(models)}
    if config:
        (folder / "metadata" / "some.cfg").write_text(config)
        keys["configs"] = ["some.cfg"]
    (folder / "metadata" / "MANIFEST").write_text(json.dumps(keys | manifest))
    return folder


def _zip(folder: Path, to: Path, prefix: str = "", compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(to, "w", compression) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, prefix + str(file.relative_to(folder)))
    return to


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
@pytest.mark.parametrize("prefix", ["", "digits/"], ids=["at the root", "in a folder"])
def test_a_zip_reads_the_same_as_the_directory_it_contains(tmp_path: Path, prefix: str, compression: int) -> None:
    file = _zip(DIGITS, tmp_path / "digits.nnpkg", prefix, compression)
    assert onert.load(file).models == onert.load(DIGITS).models
    assert onert.load(file.read_bytes()).models == onert.load(DIGITS).models


@pytest.mark.parametrize("name", ["digits_float", "digits_int8"])
def test_a_package_passes_its_own_test_case(name: str) -> None:
    folder = DIGITS.parent / name
    case = read_test_case(folder)
    assert case is not None
    program = onert.compile(onert.load(folder))
    for found, expected in zip(onert.Execution(program).run(case.inputs).values(), case.expected, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 if found.dtype.kind == "f" else 1)


def _run(package: Path, *inputs: list[float]) -> list[list[float]]:
    program = onert.compile(onert.load(package))
    outputs = onert.Execution(program).run([np.array([x], np.float32) for x in inputs])
    return [array[0].tolist() for array in outputs.values()]


def test_a_model_may_feed_several_others(tmp_path: Path) -> None:
    """x + 1 feeds both + 10 and, together with its result, a product."""
    package = _write(
        tmp_path / "graph",
        {"first.tflite": _add(1), "second.tflite": _add(10), "product.tflite": _both()},
        **{
            "model-types": ["tflite"] * 3,
            "pkg-inputs": ["0:0:0"],
            "pkg-outputs": ["2:0:0", "1:0:0"],
            "model-connect": [
                {"from": "0:0:0", "to": ["1:0:0", "2:0:1"]},
                {"from": "1:0:0", "to": ["2:0:0"]},
            ],
        },
    )
    assert _run(package, [0, 1, 2]) == [[11 * 1, 12 * 2, 13 * 3], [11, 12, 13]]


def test_the_order_of_models_does_not_matter(tmp_path: Path) -> None:
    package = _write(
        tmp_path / "backwards",
        {"last.tflite": _add(100), "first.tflite": _add(1)},
        **{
            "pkg-inputs": ["1:0:0"],
            "pkg-outputs": ["0:0:0"],
            "model-connect": [{"from": "1:0:0", "to": ["0:0:0"]}],
        },
    )
    assert _run(package, [0, 1, 2]) == [[101, 102, 103]]


def test_a_single_model_needs_no_connections(tmp_path: Path) -> None:
    package = _write(tmp_path / "one", {"a.tflite": _add(5)}, **{"minor-version": "0"})
    assert _run(package, [0, 1, 2]) == [[5, 6, 7]]


def test_the_configuration_file_sets_the_package_s_options(tmp_path: Path) -> None:
    config = "# which backend\n BACKENDS = reference  # the slow one\n\nEXECUTOR=Linear\n"
    package = onert.load(_write(tmp_path / "p", {"a.tflite": _add(5)}, config))
    assert package.config == {"BACKENDS": "reference", "EXECUTOR": "Linear"}
    assert {step.backend for step in onert.compile(package).main.steps} == {"reference"}


def _manifest(**keys: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / "metadata" / "MANIFEST"
        file.write_text(json.dumps(json.loads(file.read_text()) | keys))

    return change


def _raw(content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / "metadata" / "MANIFEST").write_bytes(content) and None


def _linked(folder: Path) -> None:
    outside = folder.parent / "outside.tflite"
    outside.write_bytes((folder / "a.tflite").read_bytes())
    (folder / "a.tflite").unlink()
    os.symlink(outside, folder / "a.tflite")


def _config(content: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "metadata" / "x.cfg").write_bytes(content)
        _manifest(configs=["x.cfg"])(folder)

    return change


BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "no manifest": (lambda folder: (folder / "metadata" / "MANIFEST").unlink(), "without metadata/MANIFEST"),
    "broken JSON": (_raw(b'{"models": ['), "MANIFEST is not valid JSON"),
    "no object": (_raw(b"[]"), "holds a list, expected an object"),
    "endless nesting": (_raw(b"[" * 100_000), "MANIFEST is not valid JSON"),
    "a newer version": (_manifest(**{"major-version": "2"}), r"version 2\.3, the newest supported is 1\.3"),
    "no version": (_manifest(**{"major-version": "one"}), "expected numbers"),
    "no models": (_manifest(models=[]), "names no models"),
    "a model that is not there": (_manifest(models=["b.tflite"]), "b.tflite cannot be read"),
    "a path that climbs out": (_manifest(models=["../outside.tflite"]), "leaves the package"),
    "an absolute path": (_manifest(models=["/etc/passwd"]), "leaves the package"),
    "a link that leads out": (_linked, "leaves the package through a link"),
    "another type": (_manifest(**{"model-types": ["circle"]}), "is a tflite model, but MANIFEST says circle"),
    "a type nobody knows": (_manifest(**{"model-types": ["tvn"]}), "model-type 'tvn'"),
    "too many types": (_manifest(**{"model-types": ["tflite", "tflite"]}), "2 model-types for 1 models"),
    "a port of no form": (_manifest(**{"pkg-inputs": ["0:0"]}), "'0:0', expected MODEL:SUBGRAPH:POSITION"),
    "a port of no model": (_manifest(**{"pkg-inputs": ["1:0:0"]}), "names 1:0:0, but there are 1 models"),
    "a port of no subgraph": (_manifest(**{"pkg-outputs": ["0:1:0"]}), "the model has 1 subgraphs"),
    "a port of no output": (_manifest(**{"pkg-outputs": ["0:0:1"]}), "the subgraph has 1 outputs"),
    "no list of targets": (_manifest(**{"model-connect": [{"from": "0:0:0", "to": "0:0:0"}]}), "a list 'to'"),
    "no model": (lambda folder: (folder / "a.tflite").write_bytes(b"text") and None, "expected a tflite or circle"),
    "a configuration of no form": (_config(b"BACKENDS reference"), "line 1 of the configuration file"),
    "a configuration that is no text": (_config(b"\xff\xfe"), "is not UTF-8"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["directory", "zip"])
@pytest.mark.parametrize(("change", "says"), BAD.values(), ids=BAD.keys())
def test_a_malformed_package_is_refused_in_one_sentence(
    tmp_path: Path, change: Callable[[Path], None], says: str, packed: bool
) -> None:
    folder = _write(tmp_path / "p", {"a.tflite": _add(1)})
    change(folder)
    if packed:
        if change is _linked:
            pytest.skip("an archive has no links")
        folder = _zip(folder, tmp_path / "p.nnpkg")
        says = {"without metadata/MANIFEST": "has no metadata/MANIFEST"}.get(says, says)
        says = says.replace("cannot be read", "is not in the archive")
    with pytest.raises(ModelError, match=says) as found:
        onert.load(folder)
    assert "\n" not in str(found.value)
    assert str(folder) in str(found.value)


def test_a_cycle_of_models_is_refused(tmp_path: Path) -> None:
    package = _write(
        tmp_path / "p",
        {"a.tflite": _both(), "b.tflite": _add(1)},
        **{
            "pkg-inputs": ["0:0:0"],
            "pkg-outputs": ["1:0:0"],
            "model-connect": [{"from": "0:0:0", "to": ["1:0:0"]}, {"from": "1:0:0", "to": ["0:0:1"]}],
        },
    )
    with pytest.raises(onert.OnertError, match="cycle"):
        onert.compile(onert.load(package))


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    good = _zip(DIGITS, tmp_path / "good.nnpkg", compression=zipfile.ZIP_STORED).read_bytes()
    for cut in (40, len(good) // 2, len(good) - 10):
        with pytest.raises(ModelError):
            onert.load(good[:cut])
    flipped = bytearray(good)
    flipped[len(good) // 3] ^= 0xFF
    with pytest.raises(ModelError, match="cannot be unpacked"):
        onert.load(bytes(flipped))


def test_an_archive_with_inflated_file_sizes_is_refused(tmp_path: Path) -> None:
    """No memory is allocated for the sizes that an archive claims."""
    file = _zip(DIGITS, tmp_path / "bomb.nnpkg", compression=zipfile.ZIP_STORED)
    raw = bytearray(file.read_bytes())
    end = raw.rindex(b"PK\x05\x06")
    at = int.from_bytes(raw[end + 16 : end + 20], "little")
    while raw[at : at + 4] == b"PK\x01\x02":
        raw[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")
        at += 46 + sum(int.from_bytes(raw[at + i : at + i + 2], "little") for i in (28, 30, 32))
    with pytest.raises(ModelError):
        onert.load(bytes(raw))


def test_formats_are_recognised_by_content_not_by_file_name(tmp_path: Path) -> None:
    model = tmp_path / "model.zip"
    model.write_bytes(_add(1))
    assert _run(model, [0, 1, 2]) == [[1, 2, 3]]
    shutil.copytree(DIGITS, tmp_path / "digits.tflite")
    assert onert.load(tmp_path / "digits.tflite").models == onert.load(DIGITS).models
