"""nnpackages whose model's program is cached are read no further than a model file is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.backend.writers import WRITERS
from onert.compiler.program_cache import other_shapes
from onert.frontend.tflite_schema import model as reader
from onert.ir import ModelError

EXAMPLE = REPOSITORY / "nnpackage" / "examples" / "digits_int8"
MODEL = "digits_int8.tflite"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private copy of a package, and an empty cache."""
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(other_shapes, "WORTH_CACHING", 0.0)
    return Path(shutil.copytree(EXAMPLE, tmp_path / "digits"))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time a model is parsed."""
    found: list[int] = []
    read = reader.read_model

    def counted(*given: object) -> object:
        found.append(1)
        return read(*given)

    monkeypatch.setattr(reader, "read_model", counted)
    return found


def described(package: Path, **entries: object) -> None:
    """Add entries to a package's manifest."""
    manifest = package / "metadata" / "MANIFEST"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **entries}))


def compiled(package: Path) -> onert.Program:
    program = onert.compile(onert.load(package), num_threads=1)
    WRITERS.finish()
    return program


def test_a_model_with_a_cached_program_is_parsed_only_when_it_is_used(package: Path, reads: list[int]) -> None:
    for _ in range(3):
        program = compiled(package)
        (given,) = program.inputs
        onert.Execution(program).run([np.zeros(given.shape, given.dtype.numpy)])
    assert len(reads) == 1
    found = onert.load(package)
    assert found.name == program.name == "digits"
    assert found.model_names == (MODEL,)
    assert found.models == onert.load(package / MODEL).models
    assert len(reads) == 3


def test_a_configuration_written_after_caching_is_used(package: Path, reads: list[int]) -> None:
    assert compiled(package).executor == "Linear"
    described(package, configs=["own.cfg"])
    (package / "metadata" / "own.cfg").write_text("EXECUTOR=Dataflow\n")
    assert compiled(package).executor == "Dataflow"
    assert len(reads) == 2
    (package / "metadata" / "own.cfg").write_text("no line of a configuration\n")
    with pytest.raises(ModelError, match="expected key=value"):
        onert.load(package)


def test_the_manifest_is_checked_even_if_the_program_is_cached(package: Path) -> None:
    compiled(package)
    described(package, **{"model-types": ["circle"]})
    with pytest.raises(ModelError, match=f"{MODEL} is a tflite model, but MANIFEST says circle"):
        onert.load(package)


def test_a_package_that_declares_ports_is_parsed(package: Path, reads: list[int]) -> None:
    compiled(package)
    described(package, **{"pkg-inputs": ["0:0:0"], "pkg-outputs": ["0:0:0"]})
    assert onert.load(package).content is None
    described(package, **{"pkg-inputs": ["0:0:7"]})
    with pytest.raises(ModelError, match="names 0:0:7, but the subgraph has 1 inputs"):
        onert.load(package)
    assert len(reads) == 3


def test_an_archive_gives_the_same_package_as_its_directory(package: Path, tmp_path: Path) -> None:
    expected = compiled(package)
    archive = Path(shutil.make_archive(str(tmp_path / "digits"), "zip", package))
    found = onert.load(archive)
    assert found.model == onert.load(package).model
    assert onert.compile(found, num_threads=1).inputs == expected.inputs
