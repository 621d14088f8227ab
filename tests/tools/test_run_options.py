"""`onert_run` accepts the options of ONE's tool: each has its effect or a note on why it has none."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from shared_material import REPOSITORY

from onert.tools import inspect

Shell = Callable[..., tuple[int, str, str]]

FLOAT = REPOSITORY / "nnpackage" / "examples" / "digits_float"
MODEL = FLOAT / "digits_float.tflite"
X, Y = np.array([[1, 2, 3]], np.float32), np.array([[10, 20, 30]], np.float32)


def _write(suffix: str, *arrays: np.ndarray) -> Path:
    """Write the arrays to a file for --load in the working directory."""
    path = Path(f"in{suffix}")
    if suffix == ".h5":
        with h5py.File(path, "w") as file:
            for i, array in enumerate(arrays):
                file.create_dataset(f"value/{i}", data=array)
    else:
        np.savez(path, **{str(i): array for i, array in enumerate(arrays)})
    return path


def _outputs(path: str) -> list[np.ndarray]:
    with h5py.File(path, "r") as file:
        return [np.asarray(file["value"][str(i)]) for i in range(len(file["value"]))]


def test_the_printed_table_has_the_format_of_one(shell: Shell) -> None:
    status, out, _ = shell(FLOAT, "-r", 2, "-m", "-p", "--backends", "reference")
    assert status == 0
    bar = "=" * 35
    time = r"\d+\.\d{3} ms"
    phases = [rf"{name:<12} takes {time}" for name in ("MODEL_LOAD", "PREPARE", "EXECUTE")]
    statistics = [rf"- {name:<8}:  {time}" for name in ("MEAN", "MAX", "MIN", "GEOMEAN")]
    assert re.match("\n".join([bar, *phases, *statistics, bar, ""]), out), out
    assert re.search(r"^PREPARE +HWM \d+ kb", out, re.MULTILINE)
    (report,) = Path().glob("*.csv")
    (row,) = csv.DictReader(report.read_text().splitlines())
    assert {"MODEL_LOAD", "PREPARE", "MEAN", "PREPARE_HWM_KB"} <= row.keys()


WAYS = {
    "positional package": (FLOAT,),
    "positional model": (MODEL,),
    "--nnpackage": ("--nnpackage", FLOAT),
    "--nnpackage, an archive": ("--nnpackage", "digits.zip"),
    "--modelfile": ("--modelfile", MODEL),
}


@pytest.mark.parametrize("arguments", WAYS.values(), ids=WAYS.keys())
def test_a_model_is_named_in_one_of_three_ways(shell: Shell, arguments: tuple[object, ...]) -> None:
    shutil.make_archive("digits", "zip", FLOAT)
    status, out, err = shell(*arguments, "--backends", "reference", "--json")
    assert status == 0, err
    assert json.loads(out)["model"] == str(arguments[-1])


NOTES = {
    "no GPU": (("-g",), {}, "-g has no effect: no backend uses GPU memory"),
    "no GPU, long": (("--gpumem_poll",), {}, "-g has no effect: no backend uses GPU memory"),
    "no such backend": (("--backends", "gpu;reference"), {}, "no backend is called 'gpu'"),
    "no such backend, environment": ((), {"BACKENDS": "acl_cl;reference"}, "no backend is called 'acl_cl'"),
    "no effect": (
        (),
        {"FP16_ENABLE": "1"},
        "FP16_ENABLE=1 has no effect: no backend computes float32 models in float16",
    ),
}


@pytest.mark.parametrize(("arguments", "environment", "says"), NOTES.values(), ids=NOTES.keys())
def test_options_without_effect_give_one_note_on_standard_error(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], environment: dict[str, str], says: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    status, out, err = shell(FLOAT, *arguments)
    assert status == 0
    assert "EXECUTE" in out
    assert says not in out
    (line,) = err.splitlines()
    assert line.startswith(f"onert_run: note: {says}")


def test_inspect_notes_a_missing_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect.main([str(FLOAT), "--ops", "--backends", "gpu;reference"]) == 0
    assert capsys.readouterr().err.startswith("onert_inspect: note: no backend is called 'gpu'")


TALL, SHORT = np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)
SHAPES = {
    "h5 when compiled": (".h5", ("--shape_prepare", "h5")),
    "H5 when compiled": (".h5", ("--shape_prepare", "H5")),
    "h5 when run": (".h5", ("--shape_run", "h5")),
    "by default": (".h5", ()),
    "by default, of another format": (".npz", ()),
    "given": (".h5", ("--shape_run", "[0,[2,3],1,[2,3]]")),
}


@pytest.mark.parametrize(("suffix", "arguments"), SHAPES.values(), ids=SHAPES.keys())
def test_input_shapes_are_taken_from_the_loaded_arrays(
    shell: Shell, adder: Path, suffix: str, arguments: tuple[str, ...]
) -> None:
    status, _, err = shell(adder, "--load", _write(suffix, TALL, 4 * TALL), *arguments, "-d", "out.h5")
    assert status == 0, err
    assert [o.tolist() for o in _outputs("out.h5")] == [(5 * TALL).tolist()]


@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 1, 3)])
@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_outputs_can_be_dumped_in_another_shape(shell: Shell, adder: Path, shape: tuple[int, ...], suffix: str) -> None:
    text = f"[0,[{','.join(map(str, shape))}]]"
    status, _, err = shell(adder, "-l", _write(".npz", X, Y), "--output_shape", text, "-d", f"out{suffix}")
    assert status == 0, err
    (found,) = _outputs("out.h5") if suffix == ".h5" else np.load("out.npz").values()
    np.testing.assert_array_equal(found, (X + Y).reshape(shape))


def test_ranges_are_recorded_in_extra_runs_before_the_measured_ones(
    shell: Shell, adder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKSPACE_DIR", "work")
    status, out, err = shell(adder, "-l", _write(".npz", X, Y), "--minmax_runs", 3, "-r", 2, "--json")
    assert status == 0, err
    assert "the ranges of 3 runs are written to work/minmax.json" in json.loads(out)["messages"]
    assert json.loads(out)["execute_ms"]["runs"] == 2
    ranges = json.loads(Path("work/minmax.json").read_text())
    assert ranges["tensor2"] == {"min": 11.0, "max": 33.0, "runs": 3}
    assert shell(adder, "--minmax_runs", 3)[0] == 0
    assert json.loads(Path("work/minmax.json").read_text())["tensor0"]["max"] <= 1.0


@pytest.mark.parametrize("given", [(), ("--cpath", "code")], ids=["default", "given"])
def test_code_can_be_generated_ahead_of_time(shell: Shell, adder: Path, given: tuple[str, ...]) -> None:
    status, out, err = shell(adder, "-c", "llvm-gen", *given, "--shape_prepare", "[0,[2,3],1,[2,3]]")
    assert status == 0, err
    folder = Path(given[1]) if given else adder.with_suffix(".llvm")
    assert f"is written to {folder}" in out
    assert {".o", ".h", ".weights"} <= {path.suffix for path in folder.iterdir()}
    assert "output 0 'tensor2' float32[2, 3]" in out


@pytest.mark.parametrize("kind", ["int8_wo", "int16_wo"])
@pytest.mark.parametrize("given", [(), ("--qpath", "q.tflite")], ids=["default", "given"])
def test_weights_are_quantised_and_the_quantised_model_is_run(shell: Shell, kind: str, given: tuple[str, ...]) -> None:
    shutil.copy(MODEL, "m.tflite")
    np.savez("x.npz", image=np.random.default_rng(0).uniform(0, 1, (1, 8, 8, 1)).astype(np.float32))
    for name, more in (("float", ()), ("integers", ("-q", kind, *given))):
        status, out, err = shell("m.tflite", *more, "--load", "x.npz", "--dump", f"{name}.npz")
        assert status == 0, err
    path = Path(given[1]) if given else Path(f"m.{kind}.tflite")
    assert f"is written to {path}" in out
    assert path.stat().st_size < MODEL.stat().st_size
    plain, rounded = (next(iter(np.load(f"{name}.npz").values())) for name in ("float", "integers"))
    assert 0 < np.abs(plain - rounded).max() < 0.02


@pytest.mark.parametrize(("kind", "tolerance"), [("uint8", 0.1), ("int16", 0.02)])
def test_a_model_is_quantised_by_calibrated_ranges_and_run(shell: Shell, kind: str, tolerance: float) -> None:
    shutil.copy(MODEL, "m.tflite")
    np.savez("x.npz", image=np.random.default_rng(0).uniform(0, 1, (1, 8, 8, 1)).astype(np.float32))
    given = ("--load", "x.npz", "--dump")
    assert shell("m.tflite", *given, "float.npz")[0] == 0
    status, out, err = shell("m.tflite", "-q", kind, *given, "integers.npz")
    assert status == 0, err
    assert f"the {kind} model, calibrated with 1 runs, is written to m.{kind}.tflite" in out
    assert Path(f"m.{kind}.tflite").stat().st_size < MODEL.stat().st_size / 2
    assert shell(f"m.{kind}.tflite", *given, "again.npz")[0] == 0
    plain, rounded, again = (next(iter(np.load(f"{n}.npz").values())) for n in ("float", "integers", "again"))
    assert 0 < np.abs(plain - rounded).max() < tolerance
    assert np.array_equal(rounded, again)
    status, out, err = shell("m.tflite", "-q", kind, "--qpath", "q.tflite", "--minmax_runs", 5)
    assert status == 0, err
    assert "calibrated with 5 runs, is written to q.tflite" in out


FAILURES: dict[str, tuple[tuple[object, ...], int, str]] = {
    "no such file": (("nothing.tflite",), 1, "nothing.tflite"),
    "no model in a file": ((__file__,), 1, "test_run_options.py"),
    "no such backend": ((FLOAT, "--backends", "gpu"), 1, "gpu"),
    "no such executor": ((FLOAT, "--executor", "Quantum"), 2, "Quantum"),
    "no such input": ((FLOAT, "--input", f"picture={FLOAT / 'samples' / '3.png'}"), 1, "picture"),
    "no such file for an input": ((FLOAT, "--input", "image=none.png"), 1, "none.png"),
    "no image": ((FLOAT, "--input", f"image={FLOAT / 'labels.txt'}"), 1, "labels.txt"),
    "a shape that does not fit": ((FLOAT, "--shape_run", "[0,[1,2]]"), 1, "dimensions"),
    "no runs": ((FLOAT, "-r", "0"), 2, "--num_runs is 0, expected at least 1"),
    "a shape of no form": ((FLOAT, "--shape_run", "[0,"), 2, "--shape_run"),
    "an input of no form": ((FLOAT, "--input", "x"), 2, "expected NAME=FILE"),
    "no such option": ((FLOAT, "--fast"), 2, "--fast"),
    "no place to write": ((FLOAT, "--dump", "none/out.npz"), 1, "none/out.npz"),
    "no such signature": ((FLOAT, "--signature", "other"), 1, "other"),
    "no model": ((), 2, "no model given, expected one of MODEL, --nnpackage, --modelfile"),
    "two models": ((FLOAT, "--modelfile", MODEL), 2, "MODEL and --modelfile given, expected one of"),
    "a model file as a package": (("--nnpackage", MODEL), 2, "a model file; expected a directory or a zip archive"),
    "a package as a model file": (("--modelfile", FLOAT), 2, "a package; expected a model file"),
    "no such package": (("--nnpackage", "nothing"), 1, "nothing"),
    "quantise to bytes by a signature": (
        (MODEL, "-q", "uint8", "--signature", "serving_default", "--qpath", "q.tflite"),
        1,
        "-q uint8 quantises a model's first graph, and cannot be used with --signature",
    ),
    "quantise a package to bytes": ((FLOAT, "-q", "uint8"), 1, "expected a .tflite or .circle file"),
    "quantise a package": ((FLOAT, "-q", "int8_wo"), 1, "expected a .tflite or .circle file"),
    "quantise what is no model": (("x.tflite", "-q", "int8_wo"), 1, "x.tflite: cannot be read"),
    "quantise to nowhere": ((MODEL, "-q", "int8_wo", "--qpath", "no/q.circle"), 1, "no/q.circle cannot be written"),
    "quantise to something else": ((FLOAT, "-q", "int4"), 2, "invalid choice: 'int4'"),
    "a path without -q": ((FLOAT, "--qpath", "q.circle"), 2, "--qpath is given without --quantize"),
    "a path without -c": ((FLOAT, "--cpath", "code"), 2, "--cpath is given without --codegen"),
    "code of another backend": ((FLOAT, "-c", "tv2-gen"), 1, "the only backend that generates code ahead of time"),
    "no name of a generator": ((FLOAT, "-c", "llvm"), 2, "expected a backend's name followed by -gen"),
    "h5 without a file": (
        (FLOAT, "--shape_run", "h5"),
        2,
        "--shape_run is h5, which takes the shapes from --load, expected --load with an .h5 file",
    ),
    "h5 with another file": ((FLOAT, "--shape_prepare", "h5", "-l", "x.npz"), 2, "expected --load with an .h5 file"),
    "too many elements": ((FLOAT, "--output_shape", "[0,[4]]", "-d", "o.npz"), 1, "shape [4], expected a shape of 10"),
    "no such output": ((FLOAT, "--output_shape", "[3,[4]]", "-d", "o.npz"), 1, "names output 3, expected 0 to 0"),
    "ranges of less than no runs": ((FLOAT, "--minmax_runs", "-1"), 2, "--minmax_runs is -1, expected at least 0"),
}


@pytest.mark.parametrize(("arguments", "status", "says"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_gives_one_message_and_a_status(
    shell: Shell, arguments: tuple[object, ...], status: int, says: str
) -> None:
    found, out, err = shell(*arguments)
    assert found == status, err
    assert not out
    assert says in err
    assert "Traceback" not in err
    assert status == 2 or (err.startswith("onert_run: ") and err.count("\n") == 1)
    assert not Path("q.circle").exists()


def test_an_unknown_operation_in_an_environment_variable_is_reported(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OP_BACKEND_Conv", "reference")
    status, _, err = shell(FLOAT)
    assert status == 1
    assert err.startswith("onert_run: OP_BACKEND_Conv is set, but no kind of operation is called 'Conv'; ")
    monkeypatch.delenv("OP_BACKEND_Conv")
    monkeypatch.setenv("OP_BACKEND_Conv2D", "reference")
    monkeypatch.setenv("OP_BACKEND_FullyConnected", "reference")
    status, _, err = shell(FLOAT, "-v", 1)
    assert status == 0
    assert re.search(r"reference runs [1-9]\d* operations", err)


def test_a_model_without_weights_can_be_run_with_random_ones(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "small.tnnproto"
    lines = ("1 0 1 4206624770", "x 1 3 8 8", "", "y", "1", "Convolution c 1 1 x y 1 3 4 3 3 1 1 1 1 1 -1")
    path.write_text("".join(f'"{line} ,"\n' for line in lines))
    assert shell(path)[0] == 1
    found = []
    for seed in (0, 0, 1):
        status, _, err = shell(path, "--random-weights", seed, "--dump", tmp_path / "out.h5")
        assert status == 0, err
        found.append(_outputs(str(tmp_path / "out.h5"))[0])
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()
