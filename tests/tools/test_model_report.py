"""Model reports as data and as text."""

from __future__ import annotations

import json
import re
import resource
from base64 import b64decode
from collections.abc import Iterator
from gzip import decompress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser
from report_models import HOSTILE, MACHINE, impossible, network
from shared_material import REPOSITORY, SHARED

from onert import frontend
from onert.compiler import Options
from onert.ir import Constant, DType, Operand, Package, Quantization, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.tools import inspect
from onert.tools.model_report import words
from onert.tools.model_report.document import document
from onert.tools.model_report.report import report
from onert.tools.model_report.summary import side_by_side, summary_lines
from onert.tools.model_report.times.machine import machine
from onert.tools.model_report.weights import constants

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_int8"
REPORTED = {
    "google-coral/movenet_single_pose_lightning_ptq.tflite": "f32[1, 1, 17, 3]",
    "generated-keras/cf_while_cond_fp32.tflite": "5 subgraphs",
    "tf-examples/detect.tflite": "TFLite_Detection_PostProcess:3",
    "samsung-one-vscode/while_000.circle": "circle",
    "onnx/openwakeword-0.4.0__alexa_v0.1.onnx": "ONNX",
    "onnx/openwakeword-0.4.0__melspectrogram.onnx": "samples is dynamic, assumed to be 16000",
}


@pytest.fixture(autouse=True, scope="module")
def peaks() -> Iterator[None]:
    """Use fixed peak rates of the machine instead of measuring them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onert.tools.model_report.report.machine", lambda threads: MACHINE)
        patch.setattr("onert.tools.model_report.times.running.SECONDS", 0.0)
        yield


def test_the_peak_rates_of_the_machine_are_measured() -> None:
    found = machine(1)
    assert found["cached_bytes_per_second"] > 0
    assert found["bytes_per_second"] > 0
    assert set(found["flops_per_second"]) == {"float32", "int8"}


def report_of(package: Package, path: str = "model", *, profile: bool = False, **options: Any) -> dict[str, Any]:
    return report(Path(path), package, Options(num_threads=1, **options), profile=profile)


@pytest.fixture(scope="module")
def digits() -> dict[str, Any]:
    return report_of(frontend.load(DIGITS), str(DIGITS), profile=True)


def test_the_summary_answers_common_questions_about_a_model(digits: dict[str, Any]) -> None:
    said = "\n".join(summary_lines(digits))
    for answer in (
        "digits_int8: nnpackage",
        "i8[1, 8, 8, 1], 0 to 1 (scale 0.003922, zero point -128), also 'image'",
        "serving_default(image) -> output_0",
        "10 in labels.txt",
        "16.5 k in 16.5 KiB: i8 16.3 k, i32 146",
        "8: 3 Conv2D, 1 DepthwiseConv2D",
        "305 k multiply-adds",
        "of constants, 74 B of inputs and outputs",
        "llvm runs 8 operations in 1 step",
        "Linear, 1 thread",
        "(an estimate)",
        "the median of",
    ):
        assert answer in said


@pytest.mark.parametrize(("count", "end"), [(4, "d"), (5, "d, ...")])
def test_only_a_longer_list_of_labels_ends_in_dots(digits: dict[str, Any], count: int, end: str) -> None:
    labels = {"file": "labels.txt", "count": count, "labels": ["a", "b", "c", "d", "e"][:count]}
    said = "\n".join(summary_lines({**digits, "model": {**digits["model"], "labels": [labels]}}))
    assert f"{count} in labels.txt: a, b, c, {end}\n" in said


def test_the_data_of_a_report_is_consistent(digits: dict[str, Any]) -> None:
    (subgraph,) = digits["subgraphs"]
    assert [stage["name"] for stage in subgraph["stages"]][:: len(subgraph["stages"]) - 1] == ["file", "compiled"]
    graphs, places, (arena,) = digits["graphs"], subgraph["places"], subgraph["arenas"]
    for graph in graphs["graphs"]:
        assert max(graph["tensors"]) < len(graphs["tensors"])
        operands = range(len(graph["tensors"]))
        for number, read, made in graph["operations"]:
            assert number < len(graphs["operations"])
            assert {i for i in (*read, *made) if i is not None} <= set(operands)
    assert max(t["constant"] for t in graphs["tensors"] if t["constant"] is not None) == len(digits["constants"]) - 1
    count = len(graphs["graphs"][subgraph["stages"][-1]["graph"]]["operations"])
    assert sorted(at for group in places["groups"] for at in group["operations"]) == list(range(count))
    assert max(arena["use"]) == arena["peak"]["bytes"] <= arena["lower_bound"] <= arena["bytes"]
    assert sum(arena["bars"][at][2] for at in arena["peak"]["owners"]) == arena["peak"]["bytes"]
    profile = digits["profile"]
    assert {at for piece in profile["pieces"] for at in piece["operations"]} == set(range(count))
    assert all(0 <= start <= start + long <= profile["observed_us"] for _, _, start, long in profile["slices"])


def test_a_report_gives_the_reason_for_each_operation_s_backend() -> None:
    found = report_of(network(), backends=("reference",))
    (subgraph,) = found["subgraphs"]
    places = subgraph["places"]
    assert {step["backend"] for step in places["steps"]} == {"reference"}
    assert all([name for name, _ in refused] == ["builtin"] for _, _, refused in places["operations"])
    assert all("is neither a copy" in reason for reason in places["reasons"])


def test_arithmetic_in_the_branches_of_a_native_if_is_counted() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[1, 16] x, bool c) => (float[1, 16] y) <float[16, 16] w = {WEIGHTS}> {
        y = If (c) <then_branch = a () => (float[1, 16] p) { p = MatMul (x, w) },
                    else_branch = b () => (float[1, 16] q) {
                        i = NonZero (x)
                        f = Cast <to = 1> (i)
                        s = ReduceSum <keepdims = 0> (f)
                        q = Add (x, s)
                    }>
    }"""
    content = parser.parse_model(text.replace("WEIGHTS", ", ".join(["1"] * 256))).SerializeToString()
    package = frontend.load(content)
    said = report_of(package)["facts"]
    assert said["arithmetic"]["multiply_adds"] == 256
    assert [runs["name"] for runs in said["runs"]["backends"]] == ["llvm"]


def test_each_pass_that_changes_something_is_a_stage() -> None:
    b = Builder("main")
    x = b.input(TensorType(DType.FLOAT32, (4,)), "x")
    kept = b.add(Unary(UnaryKind.NEG), x)
    b.add(Unary(UnaryKind.EXP), x)
    model = b.model([b.add(Unary(UnaryKind.NEG), kept)])
    (subgraph,) = report_of(Package((model,), "dead"))["subgraphs"]
    names = [stage["name"] for stage in subgraph["stages"]]
    assert names[0] == "file"
    assert "remove_dead" in names
    assert names[-1] == "compiled"


def test_a_model_that_does_not_compile_is_reported_with_the_reason() -> None:
    found = report_of(impossible(), profile=True)
    assert found["error"]
    assert found["estimate"] is found["profile"] is None
    assert [(c["elements"], "histogram" in c) for c in found["constants"]] == [(16, False)]
    said = "\n".join(summary_lines(found))
    assert "not compiled" in said
    assert "'x' f32[1, 16]" in said


@pytest.mark.parametrize("name", REPORTED)
def test_models_of_every_format_can_be_reported(name: str) -> None:
    path = SHARED / "models" / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    found = report_of(frontend.load(path), str(path))
    assert found["error"] is None
    assert REPORTED[name] in "\n".join(summary_lines(found))
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_model_without_weights_is_reported_with_random_ones(capsys: pytest.CaptureFixture[str]) -> None:
    path = SHARED / "models" / "tnn" / "darrenyao87-chinese-ocr-angle_net.tnnproto"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    assert inspect.main([str(path), "--random-weights", "3", "--num_threads", "1"]) == 0
    assert "angle_net: TNN" in capsys.readouterr().out


def test_dynamic_shapes_can_be_given_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    path = SHARED / "models" / "onnx" / "openwakeword-0.4.0__melspectrogram.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    assert inspect.main([str(path), "--shape_prepare", "[0,[1,1280]]", "--num_threads", "1"]) == 0
    said = capsys.readouterr().out
    assert "[1, 1280]" in said
    assert "operations with dynamic shapes" not in said


def test_inspecting_a_model_that_does_not_compile_prints_a_report_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect.main([str(DIGITS), "--shape_prepare", "[0,[3,8,8,1]]"]) == 1
    said = capsys.readouterr()
    assert "not compiled" in said.out
    assert "parameters" in said.out
    assert said.err.startswith("onert_inspect: ")


@pytest.mark.parametrize(
    ("array", "quantization", "wanted"),
    [
        (np.zeros((3, 2), np.float32), None, {"low": 0.0, "high": 0.0, "zeros": 1.0}),
        (np.array([1, np.nan, np.inf], np.float32), None, {"low": 1.0, "not_finite": 2}),
        (np.array([np.nan], np.float32), None, {"not_finite": 1}),
        (np.array([-3.4e38, 3.4e38], np.float32), None, {"low": float(np.float32(-3.4e38))}),
        (np.array([-1.7e308, 1.7e308]), None, {"high": 1.7e308}),
        (np.array([1.0, np.nextafter(1.0, 2)]), None, {"low": 1.0}),
        (np.array([2**63 - 1, -(2**63)], np.int64), None, {"high": float(2**63)}),
        (np.array([2**63 - 1], np.int64), None, {"low": float(2**63)}),
        (np.arange(-4, 4, dtype=np.int8), Quantization((0.5,), (1,)), {"real_low": -2.5, "real_high": 1.0}),
        (np.ones((2, 3), np.int8), Quantization((0.5, 0.25), (0, 0), 0), {"low": 1.0}),
        (np.array([True, False]), None, {"zeros": 0.5}),
        (np.zeros((0, 3), np.float32), None, {"elements": 0}),
        (np.array([b"a", b"\xff"], object), None, {"first": ["a", "\\xff"]}),
        (np.arange(200_000, dtype=np.float32), None, {"elements": 200_000, "low": 0.0}),
    ],
    ids=lambda value: f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else "",
)
def test_histograms_count_every_finite_element(
    array: np.ndarray[Any, Any], quantization: Quantization | None, wanted: dict[str, Any]
) -> None:
    dtype = DType.STRING if array.dtype == object else DType.from_numpy(array.dtype)
    constant = Constant(array)
    operand = Operand(TensorType(dtype, array.shape, quantization), "c", constant)
    (found,) = constants([(constant, operand)])
    assert {key: found[key] for key in wanted} == wanted
    if "histogram" in found:
        looked_at = found["sampled"] or array.size
        assert sum(found["histogram"]["counts"]) == looked_at - found["not_finite"]
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("word", HOSTILE.values(), ids=HOSTILE)
def test_names_in_a_model_are_never_interpreted_as_markup(word: str) -> None:
    page = document([report_of(network(word=word))])
    plain = document([report_of(network())])
    assert re.findall(r"<\w+", page) == re.findall(r"<\w+", plain)
    data = re.search(r'id="report-data">([A-Za-z0-9+/=]*)</script>', page)
    assert data is not None
    data_of_page = json.loads(decompress(b64decode(data[1])))
    assert data_of_page["reports"][0]["facts"]["inputs"][0]["name"].startswith("x")
    assert all(line.isprintable() for line in summary_lines(data_of_page["reports"][0]))


def test_the_page_is_reproducible_and_loads_nothing_external(digits: dict[str, Any]) -> None:
    page = document([digits])
    assert page == document([digits])
    assert "default-src 'none'" in page
    assert "connect-src 'none'" in page
    assert not re.search(r"<(?:script|link|img)[^>]*\s(?:src|href)=|@import|sourceMappingURL|unsafe-", page)


PAGE = REPOSITORY / "onert" / "tools" / "model_report" / "page"


@pytest.mark.parametrize("name", sorted(p.name for p in PAGE.iterdir() if p.is_file()))
def test_files_of_the_page_are_short(name: str) -> None:
    assert len((PAGE / name).read_text(encoding="utf-8").splitlines()) <= 400


def test_vendored_libraries_are_unmodified_and_include_their_licences() -> None:
    listed = (PAGE / "vendor" / "README.md").read_text(encoding="utf-8")
    scripts = sorted((PAGE / "vendor").glob("*.js"))
    assert scripts
    for script in scripts:
        assert f"`{sha256(script.read_bytes()).hexdigest()}`" in listed
        licence = script.with_name(script.name.replace(".min.js", ".LICENSE.txt")).read_text(encoding="utf-8")
        assert licence.strip() in document([])


def test_two_reports_are_compared_side_by_side(digits: dict[str, Any]) -> None:
    other = report_of(frontend.load(DIGITS), str(DIGITS), backends=("reference",))
    marked = [line for line in side_by_side([digits, other]) if " * " in line]
    assert any("llvm runs 8" in line and "reference runs 8" in line for line in marked)
    assert not any(line.startswith(("parameters", "operations", "input")) for line in marked)


def test_compared_reports_are_printed_as_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect.main([str(DIGITS), "--json", "--compare", "executor=Dataflow"]) == 0
    said = capsys.readouterr()
    first, second = json.loads(said.out)
    assert (first["options"]["executor"], second["options"]["executor"]) == ("Linear", "Dataflow")
    assert not said.err


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (words.scaled(0, "B"), "0 B"),
        (words.scaled(999.6, ""), "1.00 k"),
        (words.scaled(12_345, "op/s"), "12.3 kop/s"),
        (words.nbytes(1023), "1023 B"),
        (words.nbytes(1024), "1.00 KiB"),
        (words.nbytes(5 << 40), "5.00 TiB"),
        (words.microseconds(0.5), "0.5 us"),
        (words.microseconds(999.9), "1 ms"),
        (words.microseconds(1_500), "1.5 ms"),
        (words.microseconds(2_000_000), "2 s"),
        (words.shape((1, None, 3)), "[1, ?, 3]"),
        (words.shape(None), "[*]"),
    ],
)
def test_numbers_are_formatted_with_units(said: str, wanted: str) -> None:
    assert said == wanted


def test_a_page_that_cannot_be_written_leaves_the_old_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    for before in (None, "an older page"):
        if before is not None:
            page.write_text(before)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            status = inspect.main([str(REPOSITORY / "nnpackage" / "examples" / "digits_float"), "--html", str(page)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert status == 1
        assert f"{page} cannot be written: File too large" in capsys.readouterr().err
        assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == ([(page.name, before)] if before else [])
