"""`onert_run`: every option works as documented, standard output has only results, and failures are one line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import litert_peer as litert
import numpy as np
import pytest
from PIL import Image
from shared_material import REPOSITORY

from onert.ir import CallTypes, DType, Quantization, TensorType
from onert.tools import inspect

FLOAT, INT8 = (REPOSITORY / "nnpackage/examples" / name for name in ("digits_float", "digits_int8"))
SAMPLE = FLOAT / "samples" / "3.png"

Shell = Callable[..., tuple[int, str, str]]


def _json(shell: Shell, *arguments: object) -> dict[str, Any]:
    status, out, err = shell(*arguments, "--json")
    assert status == 0, err
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def test_json_output_has_all_documented_fields(shell: Shell) -> None:
    found = _json(shell, FLOAT, "-r", 3)
    assert set(found) == {
        "model",
        "inputs",
        "outputs",
        "load_ms",
        "compile_ms",
        "execute_ms",
        "memory",
        "topk",
        "task",
        "messages",
    }
    assert found["execute_ms"].keys() == {
        *("mean", "min", "max", "geomean", "median", "p90", "p99", "per_second", "runs")
    }
    assert found["execute_ms"]["runs"] == 3
    assert found["outputs"][0].keys() >= {"name", "dtype", "shape"}
    assert found["load_ms"] > 0


def test_the_phases_are_printed(shell: Shell) -> None:
    status, out, _ = shell(FLOAT, "-r", 2, "-w", 1, "-m")
    assert status == 0
    for word in ("MODEL_LOAD", "PREPARE", "EXECUTE", "MEAN", "MAX", "MIN", "GEOMEAN"):
        assert word in out


@pytest.mark.parametrize("package", [FLOAT, INT8], ids=["float", "int8"])
@pytest.mark.parametrize("digit", range(10))
def test_the_digits_on_sample_images_are_recognised(shell: Shell, package: Path, digit: int) -> None:
    sample = package / "samples" / f"{digit}.png"
    if not sample.is_file():
        sample = FLOAT / "samples" / f"{digit}.png"
    arguments = (package, "--input", f"image={sample}", "--image-mode", "0to1", "--labels", FLOAT / "labels.txt")
    best = _json(shell, *arguments, "--topk", 2)["topk"]
    assert len(best) == 2
    assert best[0]["class"] == digit
    assert best[0]["score"] >= best[1]["score"]


def _numbers(folder: Path) -> tuple[Path, Path]:
    first, second = folder / "x.npy", folder / "y.npy"
    np.save(first, np.array([[1, 2, 3]], np.float32))
    np.save(second, np.array([[10, 20, 30]], np.float32))
    return first, second


def test_input_files_are_given_by_name_or_position(shell: Shell, adder: Path, tmp_path: Path) -> None:
    x, y = _numbers(tmp_path)
    status, _, err = shell(adder, "--input", f"tensor0={x}", "--input", f"1={y}", "-d", "out.npz")
    assert status == 0, err
    with np.load("out.npz") as out:
        assert out["tensor2"].tolist() == [[11, 22, 33]]


@pytest.mark.parametrize("kind", ["npz", "h5", "raw"])
def test_inputs_and_outputs_can_be_files_of_every_format(shell: Shell, adder: Path, tmp_path: Path, kind: str) -> None:
    x, y = (np.load(file) for file in _numbers(tmp_path))
    if kind == "npz":
        np.savez("in.npz", tensor0=x, tensor1=y)
        status, _, err = shell(adder, "--load", "in.npz", "--dump", "out.npz")
        with np.load("out.npz") as file:
            found = file["tensor2"]
    elif kind == "h5":
        with h5py.File("in.h5", "w") as file:
            for i, array in enumerate((x, y)):
                file.create_dataset(f"value/{i}", data=array)
        status, _, err = shell(adder, "-l", "in.h5", "-d", "out.h5")
        with h5py.File("out.h5", "r") as file:
            found = np.asarray(file["value/0"])
    else:
        for i, array in enumerate((x, y)):
            Path(f"in.{i}").write_bytes(array.tobytes())
        status, _, err = shell(adder, "--load:raw", "in", "--dump:raw", "out", "--dump_input:raw", "again")
        found = np.frombuffer(Path("out.0").read_bytes(), np.float32).reshape(1, 3)
        assert Path("again.1").read_bytes() == y.tobytes()
    assert status == 0, err
    assert found.tolist() == [[11, 22, 33]]


def test_random_inputs_depend_on_the_seed(shell: Shell, adder: Path) -> None:
    written = []
    for seed in (1, 1, 2):
        assert shell(adder, "--seed", seed, "--dump_input:raw", "in")[0] == 0
        written.append(Path("in.0").read_bytes())
    assert written[0] == written[1] != written[2]


def test_shapes_can_be_prepared_and_changed(shell: Shell, adder: Path) -> None:
    for option in ("--shape_prepare", "--shape_run"):
        found = _json(shell, adder, option, "[0,[2,3],1,[2,3]]")
        assert found["outputs"][0]["shape"] == [2, 3]


def test_quantised_tensors_can_be_given_and_dumped_as_real_numbers(shell: Shell, tmp_path: Path) -> None:
    quantized = TensorType(DType.INT8, (1, 3), Quantization((0.5,), (2,)))
    file = tmp_path / "identity.tflite"
    relu = litert.one_operator("RELU", None, CallTypes((quantized,), (quantized,)), {})
    file.write_bytes(relu)
    np.save("x.npy", np.array([[-1, 1.5, 4]], np.float32))
    status, _, err = shell(file, "--load", "x.npy", "--force_float", "--dump:raw", "out")
    assert status == 0, err
    assert np.frombuffer(Path("out.0").read_bytes(), np.float32).tolist() == [0, 1.5, 4]


def test_a_csv_report_is_written(shell: Shell, adder: Path) -> None:
    assert shell(adder, "-p", "--backends", "reference")[0] == 0
    (report,) = Path().glob("*-adder-reference.csv")
    assert "EXECUTE" in report.read_text()


def test_verbose_output_says_which_backend_runs_the_model(shell: Shell, adder: Path) -> None:
    status, out, err = shell(adder, "-v", 1, "--backends", "reference")
    assert status == 0
    assert "reference" in err
    assert "step 0" not in out


MODES = {"0to1": (0, 1), "neg1to1": (-1, 1), "0to255": (0, 255), "neg128to127": (-128, 127)}


@pytest.mark.parametrize(("mode", "ends"), MODES.items(), ids=MODES.keys())
def test_pixels_are_scaled_as_the_mode_says(shell: Shell, tmp_path: Path, mode: str, ends: tuple[float, float]) -> None:
    picture = TensorType(DType.FLOAT32, (1, 2, 2, 1))
    file = tmp_path / "picture.tflite"
    file.write_bytes(litert.one_operator("ABS", ("AbsOptions", {}), CallTypes((picture,), (picture,)), {}))
    Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8)).save("x.png")
    status, _, err = shell(file, "--input", "tensor0=x.png", "--image-mode", mode, "--dump_input:raw", "in")
    assert status == 0, err
    low, high = ends
    found = np.frombuffer(Path("in.0").read_bytes(), np.float32)
    np.testing.assert_allclose(found, [low, high, high, low], atol=1e-5)


def test_a_traceback_is_printed_at_verbosity_2(shell: Shell) -> None:
    assert "Traceback" in shell("nothing.tflite", "-v", 2)[2]


def test_onert_run_as_a_process_has_the_right_output_and_status() -> None:
    for model, status in ((FLOAT, 0), ("no model", 1)):
        process = subprocess.run(
            [sys.executable, "-m", "onert.tools.run", str(model)], capture_output=True, text=True, check=False
        )
        assert process.returncode == status
        assert ("float32[1, 10]" in process.stdout) == (status == 0)
        assert ("cannot be read" in process.stderr) == (status == 1)


def test_the_version_is_printed(shell: Shell) -> None:
    status, out, _ = shell("--version")
    assert (status, out.split()[0]) == (0, "onert")


@pytest.mark.parametrize(
    ("option", "says"),
    [((), "multiply-adds"), (("--text",), "subgraph "), (("--ops",), "FullyConnected"), (("--plan",), "bytes for")],
    ids=["summary", "text", "operations", "memory"],
)
def test_a_model_can_be_inspected(capsys: pytest.CaptureFixture[str], option: tuple[str, ...], says: str) -> None:
    assert inspect.main([str(FLOAT), *option]) == 0
    captured = capsys.readouterr()
    assert says in captured.out
    assert not captured.err


def test_inspecting_a_missing_model_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect.main(["nothing.tflite"]) == 1
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.startswith("onert_inspect: nothing.tflite")
