"""Every kind of hostile package is refused with one sentence: as a directory, as an archive and as bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import hostile_packages as hostile
import pytest
from patience import in_time
from shared_material import REPOSITORY, SHARED, needs_shared
from zips import METHODS

import onert
from onert.ir import ModelError

CONTENT = (REPOSITORY / "nnpackage/examples/digits_float/digits_float.tflite").read_bytes()


def _refused(source: Path | bytes, says: str) -> None:
    with pytest.raises(ModelError, match=says) as caught:
        onert.load(source)
    sentence = str(caught.value)
    assert sentence.isprintable()
    assert len(sentence) < 10_000


@pytest.mark.parametrize(("manifest", "says"), hostile.MANIFESTS.values(), ids=hostile.MANIFESTS.keys())
def test_a_hostile_manifest_is_refused(tmp_path: Path, manifest: bytes, says: str) -> None:
    files = hostile.files(manifest, model=CONTENT)
    _refused(hostile.write_folder(tmp_path / "p", files), says)
    for method in (METHODS["stored"], METHODS["deflated"]):
        _refused(hostile.zipped(files, method), says)


@pytest.mark.parametrize(("config", "says"), hostile.CONFIGS.values(), ids=hostile.CONFIGS.keys())
def test_a_hostile_configuration_is_refused(tmp_path: Path, config: bytes, says: str) -> None:
    files = hostile.files(hostile.manifest(configs=["x.cfg"]), config, CONTENT)
    _refused(hostile.write_folder(tmp_path / "p", files), says)
    (tmp_path / "p.nnpkg").write_bytes(hostile.zipped(files))
    _refused(tmp_path / "p.nnpkg", says)
    _refused(hostile.zipped(files), says)


@pytest.mark.parametrize("name", ["metadata/MANIFEST", "metadata/x.cfg", hostile.MODEL])
@pytest.mark.parametrize("make", hostile.IN_PLACE_OF_FILES.values(), ids=hostile.IN_PLACE_OF_FILES.keys())
def test_a_special_file_in_place_of_a_file_is_refused_without_blocking(
    tmp_path: Path, make: Callable[[Path], object], name: str
) -> None:
    """None of these makes a reader wait, and only an empty file is valid, as a configuration."""
    folder = hostile.write_folder(tmp_path / "p", hostile.files(hostile.manifest(configs=["x.cfg"]), b"", CONTENT))
    (folder / name).unlink()
    make(folder / name)
    if make is Path.touch and name.endswith(".cfg"):
        assert onert.load(folder).config == {}
        return
    with in_time():
        _refused(
            folder, "cannot be read|leaves the package|without metadata/MANIFEST|is not valid JSON|expected a tflite"
        )


def test_a_hostile_configuration_runs_nothing_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even on paths that read the package without refusing it."""
    (tmp_path / "evil.py").write_text("import pathlib\npathlib.Path('ran').touch()\n\nclass B: ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    config = b"BACKENDS=evil:B\nWORKSPACE_DIR=out\nTRACING_MODE=1\nMINMAX_DUMP=1\nGRAPH_DOT_DUMP=2\nPROFILING_MODE=1\n"
    content = hostile.zipped(hostile.files(hostile.manifest(configs=["x.cfg"]), config, CONTENT))
    package = onert.frontend.load(content)
    for give in (lambda: onert.load(content), lambda: onert.compile(package), lambda: onert.bundle(package, "out")):
        try:
            give()
        except ModelError:
            continue
    assert {path.name for path in tmp_path.iterdir()} <= {"evil.py", "out"}
    assert not any("trace" in path.name or "dot" in path.suffix for path in tmp_path.glob("out/*"))


@needs_shared
@pytest.mark.parametrize("name", ["config_abort", "config_write", "version_inf"])
def test_crafted_packages_are_refused(name: str) -> None:
    file = SHARED / "conformance/hostile" / f"{name}.zip"
    if not file.is_file():
        pytest.skip(f"{file.name} is not among the shared cases")
    _refused(file, "only the user may set|expected an installed backend|is not a number in JSON")
    _refused(file.read_bytes(), "only the user may set|expected an installed backend|is not a number in JSON")
