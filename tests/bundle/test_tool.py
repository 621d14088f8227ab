"""The `onert_bundle` command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.tools.bundle import main

from .machines import needs_compiler

DIGITS = str(REPOSITORY / "nnpackage" / "examples" / "digits_float")
LENET = str(REPOSITORY / "docs" / "examples" / "lenet" / "lenet_mnist.tflite")


def test_prints_the_target_and_a_warning_about_speed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = ["--target", "x86_64", "--cpu", "x86-64-v3", "--save-asm", "--save-ir"]
    assert main([LENET, "-o", str(tmp_path), "--api", "both", *code]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("lenet_mnist for x86-64-v3\n")
    assert printed.err.startswith("onert_bundle: on the best processors code for x86-64-v3 alone takes up to 8 times ")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".bin", ".h", ".ll", ".o", ".s", ".txt", ".weights"]
    assert "ymm" in (tmp_path / "lenet_mnist.s").read_text()


def test_json_output_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([DIGITS, "-o", str(tmp_path), "--name", "d", "--target", "aarch64-linux-gnu", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["name"], printed["target"]) == ("d", "aarch64,aarch64-dotprod")
    assert Path(printed["files"]["weights"]).stat().st_size == printed["memory"]["constants"]


@needs_compiler
def test_several_models_become_several_entries(tmp_path: Path) -> None:
    assert main([DIGITS, LENET, "-o", str(tmp_path), "--name", "all", "--cpu", "native"]) == 0
    loaded = onert.load_bundle(tmp_path)
    assert loaded.entries == ("digits_float", "lenet_mnist")
    (scores,) = loaded.run([np.zeros((1, 28, 28, 1), np.float32)], "lenet_mnist").values()
    assert scores.shape == (1, 10)
    named = ["--entry", "small", "--entry", "large", "--cpu", "native"]
    assert main([DIGITS, LENET, "-o", str(tmp_path / "named"), *named]) == 0
    assert onert.load_bundle(tmp_path / "named").entries == ("small", "large")


def test_failures_print_one_line_and_exit_with_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        [str(tmp_path / "nothing.tflite")],
        [DIGITS, "--target", "z80"],
        [DIGITS, "--signature", "nothing"],
        [DIGITS, "--shape", "[0,[2,9,9,9]]"],
    ):
        assert main([*arguments, "-o", str(tmp_path / "out")]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("onert_bundle: ")
        assert len(printed.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_wrong_usage_exits_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["-o", str(tmp_path)]
    assert main([DIGITS, "--shape", "rubbish", *out]) == 2
    assert main([DIGITS, "--threads", "0", *out]) == 2
    assert main([DIGITS, LENET, "--signature", "serving_default", *out]) == 2
    assert main([DIGITS, "--entry", "a", "--entry", "b", *out]) == 2
    with pytest.raises(SystemExit) as exited:
        main([DIGITS])
    assert exited.value.code == 2
    assert "-o/--output" in capsys.readouterr().err
