"""Third-party model formats: an installed one is read everywhere, and a broken one breaks no other."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from plugin.installing import pip_install, shell
from shared_material import REPOSITORY

import onert
from onert.frontend import formats

SOURCE = Path(__file__).parent / "onert_mlp"
DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"

RNG = np.random.default_rng(6)
SIZES = (5, 7, 6, 3)
LAYERS = [
    (RNG.standard_normal((outputs, inputs)).astype("<f4"), RNG.standard_normal(outputs).astype("<f4"), activation)
    for inputs, outputs, activation in zip(SIZES, SIZES[1:], (1, 2, 0), strict=False)
]


def perceptron_file() -> bytes:
    """A perceptron of three layers in the example's format."""
    content = b"MLP1" + struct.pack("<II", SIZES[0], len(LAYERS))
    for weight, bias, activation in LAYERS:
        content += struct.pack("<II", len(bias), activation) + weight.tobytes() + bias.tobytes()
    return content


def perceptron(x: np.ndarray) -> np.ndarray:
    for weight, bias, activation in LAYERS:
        x = x @ weight.T + bias
        x = (x, np.maximum(x, 0), np.tanh(x))[activation]
    return x


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which pip has installed the example, with a model beside it."""
    target = tmp_path_factory.mktemp("site")
    pip_install(SOURCE, target)
    (target / "model.mlp").write_bytes(perceptron_file())
    return target


@pytest.fixture
def plugin(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make this process find the example; returns the model's path."""
    monkeypatch.syspath_prepend(str(site))
    return site / "model.mlp"


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("way", ["path", "bytes"])
def test_a_file_of_an_installed_format_is_read_and_run(plugin: Path, backend: str, way: str) -> None:
    package = onert.load(plugin if way == "path" else perceptron_file())
    assert package.name == ("model" if way == "path" else package.name)
    execution = onert.Execution(onert.compile(package, backends=(backend,)))
    for rows in (1, 4):  # the batch size is dynamic
        x = RNG.standard_normal((rows, SIZES[0])).astype(np.float32)
        (y,) = execution.run([x]).values()
        np.testing.assert_allclose(y, perceptron(x), rtol=1e-5, atol=1e-5)


def test_the_interpreter_reads_an_installed_format(plugin: Path) -> None:
    interpreter = onert.Interpreter(model_path=str(plugin))
    interpreter.allocate_tensors()
    (entry,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    x = np.ones((1, SIZES[0]), np.float32)
    interpreter.set_tensor(entry["index"], x)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(result["index"]), perceptron(x), rtol=1e-5)


def test_the_command_line_tools_read_an_installed_format(site: Path) -> None:
    for tool, says in (("run", "output 0"), ("inspect", "FullyConnected")):
        done = shell(site, "-m", f"onert.tools.{tool}", "model.mlp")
        assert done.returncode == 0, done.stderr
        assert says in done.stdout


def test_a_plugin_is_not_imported_for_a_built_in_format(site: Path) -> None:
    code = f"import sys, onert; onert.load({str(DIGITS)!r}); print('onert_mlp' in sys.modules)"
    assert shell(site, "-c", code).stdout.strip() == "False"


WHOLE = perceptron_file()
HOSTILE: dict[str, tuple[bytes, str]] = {
    "no numbers": (WHOLE[:4], "the number of inputs has 0 bytes at offset 4, expected 4"),
    "cut in a weight": (WHOLE[:60], r"layer 0: weight has 40 bytes at offset 20, expected 140"),
    "cut at the end": (WHOLE[:-1], r"layer 2: bias has 11 bytes at offset \d+, expected 12"),
    "longer": (WHOLE + b"\0", "1 bytes follow the last layer"),
    "too many layers": (WHOLE[:8] + b"\xff" * 4 + WHOLE[12:], "the number of layers is 4294967295, expected at most"),
    "too wide": (WHOLE[:12] + b"\xff\xff\0\0" + WHOLE[16:], "layer 0: weight has .* bytes at offset 20, expected"),
    "no such activation": (WHOLE[:16] + b"\x09\0\0\0" + WHOLE[20:], "layer 0: the activation is 9, expected at most 2"),
}


@pytest.mark.parametrize(("content", "says"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_malformed_file_is_refused_in_one_sentence(plugin: Path, tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "bad.mlp"
    file.write_bytes(content)
    with pytest.raises(onert.ModelError, match=says) as caught:
        onert.load(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


# ---- broken formats


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Installs a distribution of one module that registers a format by entry point."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, code: str) -> None:
        (tmp_path / f"{name}.py").write_text(code)
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[onert.frontends]\n{name} = {name}:FORMAT\n")

    return make


def reader(name: str, recognize: str = "head.startswith(b'WXYZ')", load: str = "None") -> str:
    """The code of a format with these two expressions."""
    return f"""
from attrs import evolve
from onert.frontend import Format
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
def model():
    b = Builder()
    return b.model([b.input(TensorType(DType.FLOAT32, (1,)), "x")])
def recognize(head, path): return {recognize}
def load(content, path): return {load}
FORMAT = Format({name!r}, recognize, load)
"""


WRONG = {
    "f_syntax": ("def", "the model format 'f_syntax' at f_syntax:FORMAT cannot be loaded: SyntaxError"),
    "f_import": ("import nowhere_at_all", "cannot be loaded: ModuleNotFoundError: No module named 'nowhere_at_all'"),
    "f_raises": ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
    "f_leaves": ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
    "f_lacks": ("", "cannot be loaded: AttributeError: module 'f_lacks' has no attribute 'FORMAT'"),
    "f_int": ("FORMAT = 3", "the model format 'f_int' at f_int:FORMAT is a int, expected an onert.frontend.Format"),
    "f_ask": (reader("f_ask", "1 / 0"), "the reader of model format 'f_ask' failed: ZeroDivisionError"),
    "f_read": (reader("f_read", load="content[99]"), "the reader of model format 'f_read' failed: IndexError"),
    "f_gives": (reader("f_gives", load="7"), "the reader of model format 'f_gives' returned a int, not a Package"),
    "f_broken": (
        reader(
            "f_broken",
            load="Package((evolve(model(), subgraphs=(evolve(model().primary, outputs=(5,)),)),))",
        ),
        "outputs",
    ),
}


@pytest.mark.parametrize(("name", "row"), WRONG.items(), ids=WRONG.keys())
def test_a_broken_format_is_reported_in_one_sentence_and_the_rest_works(
    install: Callable[[str, str], None], plugin: Path, name: str, row: tuple[str, str]
) -> None:
    code, says = row
    install(name, code)
    with pytest.raises(onert.ModelError) as caught:
        onert.load(b"WXYZ0123456789abcdef")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert onert.load(DIGITS).models
    if name != "f_ask":  # which is asked before the example, in order of names
        assert onert.load(plugin).models
    assert {"tflite", "circle", "nnpackage", "mlp"} <= {format_.name for format_ in formats()}


def test_a_plugin_does_not_replace_a_built_in_format(install: Callable[[str, str], None]) -> None:
    install("f_thief", reader("f_thief", recognize="True", load="1 / 0"))
    assert onert.load(DIGITS).models
    with pytest.raises(onert.ModelError, match="the reader of model format 'f_thief' failed: ZeroDivisionError"):
        onert.load(b"nothing that is known")


# ---- the documentation


def test_the_documentation_quotes_the_example_frontend() -> None:
    page = (REPOSITORY / "docs" / "writing_a_frontend.md").read_text(encoding="utf-8")
    first = re.search(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert first is not None
    assert first[1] == (SOURCE / "onert_mlp" / "__init__.py").read_text(encoding="utf-8")
    assert len(first[1].splitlines()) < 80
