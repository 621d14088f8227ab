"""onert_bundle accepts the options of Glow's tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from onert.tools.bundle import main, model_compiler

from .small_models import Network

MODEL = "MODEL.tflite"
"""A placeholder in arguments for the path of a small model."""
INPUT = "main_0"
Command = Callable[[Sequence[str]], int]
SAME: dict[str, tuple[Command, list[str], list[str]]] = {
    "the page's loader": (
        main,
        ["5_1087.png", "-image_mode=0to1", "-d", MODEL, "-jit", "-emit-bundle", "OUT"],
        [MODEL, "-o", "OUT"],
    ),
    "a name without an ending": (
        main,
        ["-d", MODEL.removesuffix(".tflite"), "-emit-bundle", "OUT"],
        [MODEL, "-o", "OUT"],
    ),
    "its script": (main, ["-d", MODEL, "-cpu", "-emit-bundle", "OUT"], [MODEL, "-o", "OUT"]),
    "model-compiler": (
        model_compiler,
        ["-g", f"-model={MODEL}", "-backend=CPU", "-emit-bundle=OUT", "-bundle-api=dynamic"],
        [MODEL, "-o", "OUT"],
    ),
    "its default": (model_compiler, ["-m", MODEL, "-emit-bundle=OUT"], [MODEL, "-o", "OUT", "--api", "static"]),
    "names": (
        main,
        ["-model", MODEL, "-network-name=n", "-main-entry-name", "run_n", "-emit-bundle=OUT"],
        [MODEL, "--name", "n", "--entry", "run_n", "-o", "OUT"],
    ),
    "code": (
        main,
        [
            "-m",
            MODEL,
            "-target=x86_64",
            "-mcpu=haswell",
            "-relocation-model=static",
            "-llvm-save-asm",
            "-emit-bundle=OUT",
        ],
        [MODEL, "--target", "x86_64", "--cpu", "haswell", "--relocation", "static", "--save-asm", "-o", "OUT"],
    ),
    "floats in registers": (
        main,
        ["-m", MODEL, "-target=armv7-linux-gnueabi", "-float-abi=hard", "-emit-bundle=OUT"],
        [MODEL, "--target", "armv7-linux-gnueabihf", "-o", "OUT"],
    ),
    "an input": (
        main,
        ["-m", MODEL, f"-model-input={INPUT},int8q,[1,8],0.5,0", "-emit-bundle=OUT"],
        [MODEL, "--shape", "[0, [1, 8]]", "-o", "OUT"],
    ),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path that replaces MODEL."""
    path = tmp_path_factory.mktemp("glow") / "small"
    path.with_suffix(".tflite").write_bytes(Network((1, 8)).dense(4).done())
    return str(path)


def _files(command: Command, arguments: Sequence[str], model: str, out: Path) -> dict[str, bytes]:
    assert command([a.replace("MODEL", model).replace("OUT", str(out)) for a in arguments]) == 0
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.parametrize(("command", "glow", "ours"), SAME.values(), ids=SAME)
def test_options_of_glow_tools_produce_the_same_bundle(
    command: Command, glow: list[str], ours: list[str], model: str, tmp_path: Path
) -> None:
    assert _files(command, glow, model, tmp_path / "glow") == _files(main, ours, model, tmp_path / "ours")


def test_options_without_effect_are_reported(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _files(main, ["a.png", "-image_mode=0to1", "-d", MODEL, "-jit", "-g", "-cpu", "-emit-bundle=OUT"], model, tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" is ignored: ")[0] for line in lines] == [
        f"onert_bundle: {name}" for name in ("-g", "-jit", "-cpu", "-image_mode", "a.png")
    ]


WRONG = {
    "no model is given": [],
    "does not support": ["-m", MODEL, "-float-abi=soft", "-target=x86_64"],
    "expected one of the types": ["-m", MODEL, "-model-input=x,string,[1]"],
    "expected NAME,TYPE,": ["-m", MODEL, "-model-input=x,float,1"],
    f"gives '{INPUT}' the type float, but in the model it is i8": ["-m", MODEL, f"-model-input={INPUT},float,[1,8]"],
}


@pytest.mark.parametrize(("sentence", "arguments"), WRONG.items(), ids=WRONG)
def test_invalid_glow_options_print_one_line_and_exit_with_status_2(
    sentence: str, arguments: list[str], model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert model_compiler([*(a.replace("MODEL", model) for a in arguments), f"-emit-bundle={tmp_path / 'out'}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("model-compiler: ")
    assert sentence in line
    assert list(tmp_path.iterdir()) == []


def test_only_the_cpu_backend_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        model_compiler(["-m", MODEL, "-backend=OpenCL", f"-emit-bundle={tmp_path}"])
    assert exited.value.code == 2
    assert "OpenCL" in capsys.readouterr().err
