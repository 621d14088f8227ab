"""Bundles can be asked for in the words of Glow's tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from shared_material import REPOSITORY

from onert.tools.bundle import main, model_compiler

LENET = str(REPOSITORY / "docs" / "examples" / "lenet" / "lenet_mnist.tflite")
INPUT = "serving_default_data:0"
Command = Callable[[Sequence[str]], int]
SAME: dict[str, tuple[Command, list[str], list[str]]] = {
    "the page's loader": (
        main,
        ["5_1087.png", "-image_mode=0to1", "-d", LENET, "-jit", "-emit-bundle", "OUT"],
        [LENET, "-o", "OUT"],
    ),
    "its script": (main, ["-d", LENET, "-cpu", "-emit-bundle", "OUT"], [LENET, "-o", "OUT"]),
    "model-compiler": (
        model_compiler,
        ["-g", f"-model={LENET}", "-backend=CPU", "-emit-bundle=OUT", "-bundle-api=dynamic"],
        [LENET, "-o", "OUT"],
    ),
    "its default": (model_compiler, ["-m", LENET, "-emit-bundle=OUT"], [LENET, "-o", "OUT", "--api", "static"]),
    "names": (
        main,
        ["-model", LENET, "-network-name=n", "-main-entry-name", "run_n", "-emit-bundle=OUT"],
        [LENET, "--name", "n", "--entry", "run_n", "-o", "OUT"],
    ),
    "code": (
        main,
        [
            "-m",
            LENET,
            "-target=x86_64",
            "-mcpu=haswell",
            "-relocation-model=static",
            "-llvm-save-asm",
            "-emit-bundle=OUT",
        ],
        [LENET, "--target", "x86_64", "--cpu", "haswell", "--relocation", "static", "--save-asm", "-o", "OUT"],
    ),
    "floats in registers": (
        main,
        ["-m", LENET, "-target=armv7-linux-gnueabi", "-float-abi=hard", "-emit-bundle=OUT"],
        [LENET, "--target", "armv7-linux-gnueabihf", "-o", "OUT"],
    ),
    "an input": (
        main,
        ["-m", LENET, f"-model-input={INPUT},float,[1,28,28,1]", "-emit-bundle=OUT"],
        [LENET, "--shape", "[0, [1, 28, 28, 1]]", "-o", "OUT"],
    ),
}


def _files(command: Command, arguments: Sequence[str], out: Path) -> dict[str, bytes]:
    assert command([a.replace("OUT", str(out)) for a in arguments]) == 0
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.parametrize(("command", "glow", "ours"), SAME.values(), ids=SAME)
def test_what_is_asked_for_in_glow_s_words_is_the_same(
    command: Command, glow: list[str], ours: list[str], tmp_path: Path
) -> None:
    assert _files(command, glow, tmp_path / "glow") == _files(main, ours, tmp_path / "ours")


def test_what_changes_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _files(main, ["a.png", "-image_mode=0to1", "-d", LENET, "-jit", "-g", "-cpu", "-emit-bundle=OUT"], tmp_path)
    said = capsys.readouterr().err.splitlines()
    assert [line.split(" is ignored: ")[0] for line in said] == [
        f"onert_bundle: {name}" for name in ("-g", "-jit", "-cpu", "-image_mode", "a.png")
    ]


WRONG = {
    "no model is given": [],
    "does not have": ["-m", LENET, "-float-abi=soft", "-target=x86_64"],
    "expected a type of": ["-m", LENET, "-model-input=x,string,[1]"],
    "expected NAME,TYPE,": ["-m", LENET, "-model-input=x,float,1"],
    f"says that '{INPUT}' is int8q, the model says f32": ["-m", LENET, f"-model-input={INPUT},int8q,[1,28,28,1],1.0,0"],
}


@pytest.mark.parametrize(("sentence", "arguments"), WRONG.items(), ids=WRONG)
def test_what_cannot_be_asked_for_is_one_line_and_status_2(
    sentence: str, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert model_compiler([*arguments, f"-emit-bundle={tmp_path / 'out'}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("model-compiler: ")
    assert sentence in line
    assert list(tmp_path.iterdir()) == []


def test_only_the_processor_makes_bundles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        model_compiler(["-m", LENET, "-backend=OpenCL", f"-emit-bundle={tmp_path}"])
    assert exited.value.code == 2
    assert "OpenCL" in capsys.readouterr().err
