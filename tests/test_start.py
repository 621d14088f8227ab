"""Which modules a process imports to run one model."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import attrs
import numpy as np
import pytest
from model_writer import Model
from shared_material import REPOSITORY

from onert.ir import DType

RUN = """
import sys
import numpy as np
import onert
from onert.compiler.program_cache import other_shapes
other_shapes.WORTH_CACHING = 0.0
program = onert.compile(onert.load(sys.argv[1]))
x = np.ones(program.inputs[0].shape, program.inputs[0].dtype.numpy)
print(next(iter(onert.Execution(program).run([x]).values())).tolist())
print(*sorted(sys.modules))
"""
COMPILING = ("llvmlite", "onert.compiler.compiler", "onert_llvm.compile", "onert_llvm.irbuilder", "onert_llvm.kernels")
UNUSUAL = (
    "circle_schema",
    "concurrent.futures",
    "importlib.metadata",
    "ml_dtypes",
    "onert.backend.emission",
    "onert.bundle.emit",
    "onert.exec.observers",
    "onert.frontend.tflite_schema.table.layers.windows",
    "onert.ir.ops.recurrent.lstm",
    "onert.ir.text.parser",
    "onert.runtime.interpreter",
    "onert.tools",
    "tempfile",
)


LISTED = frozenset(Path(__file__).with_name("start_modules.txt").read_text(encoding="utf-8").split())
"""This project's modules that a process may import if its program is cached, one a line; no operation kinds. Each costs
at least a fifth of a millisecond, so an addition must be needed by every such process."""

LOAD_THEN_COMPILE = """
import sys
import threading
import onert
package = onert.load(sys.argv[1])
assert threading.active_count() == 1, threading.enumerate()
print(*sorted(sys.modules))
onert.compile(package)
print(*sorted(sys.modules))
"""


def _said(script: str, model: Path, tmp_path: Path) -> list[str]:
    """The lines that a process prints; all processes of a test share a cache."""
    environment = {**os.environ, "ONERT_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", script, str(model)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.splitlines()


def _twice(script: str, model: Path, tmp_path: Path) -> tuple[str, set[str], set[str]]:
    """The results of two processes, which are equal, and the modules that the first and the second one import."""
    (*result, modules), (*again, second) = (_said(script, model, tmp_path) for _ in range(2))
    assert result == again
    return "\n".join(result), set(modules.split()), set(second.split())


def _operation_kinds(modules: set[str]) -> set[str]:
    return {module for module in modules if module.startswith("onert.ir.ops.")}


def test_the_compiler_is_imported_while_an_uncached_model_is_loaded(tmp_path: Path) -> None:
    model = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"
    loaded, compiled = (set(line.split()) for line in _said(LOAD_THEN_COMPILE, model, tmp_path))
    assert set(COMPILING) <= loaded
    assert loaded == compiled


def test_printing_a_model_does_not_import_llvm() -> None:
    model = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"
    said = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "onert.tools.inspect", str(model), "--text"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "FULLY_CONNECTED" in said.stdout.upper()
    assert "llvmlite" not in said.stderr


@pytest.mark.parametrize("name", ["digits_float", "digits_int8", "digits_int8/digits_int8.tflite"])
def test_a_second_process_imports_neither_the_compiler_nor_llvm(name: str, tmp_path: Path) -> None:
    model = REPOSITORY / "nnpackage" / "examples" / name
    _, compiling, running = _twice(RUN, model, tmp_path)
    assert set(COMPILING) <= compiling
    assert {*COMPILING, *UNUSUAL, "onert.frontend.tflite_schema.model"}.isdisjoint(running)  # the last reads content
    assert not _operation_kinds(running)
    assert {module for module in running if module.startswith("onert")} <= LISTED


@pytest.mark.parametrize("elements", [1 << 10, 1 << 16, 1 << 19])
def test_a_second_process_needs_no_operations_whatever_the_size_of_an_input(elements: int, tmp_path: Path) -> None:
    model = tmp_path / "relu.tflite"
    built = Model()
    graph = built.graph()
    x, y = graph.input(DType.FLOAT32, (1, elements)), graph.tensor(DType.FLOAT32, (1, elements))
    graph.operator("RELU", [x], [y])
    graph.outputs(y)
    model.write_bytes(built.done())
    assert not _operation_kinds(_twice(RUN, model, tmp_path)[2])


RUN_A_SESSION = """
import sys
import numpy as np
import onert
from onert.compiler.program_cache import other_shapes
other_shapes.WORTH_CACHING = 0.0
session = onert.InferenceSession(sys.argv[1])
print(session.run(None, {"x": np.ones((2, 3), np.float32)})[0].tolist())
print(*sorted(sys.modules))
"""
SESSION_ONLY = ("onert.frontend.onnx", "onert.frontend.wire", "onert.runtime.", "onert.frontend.windows")
"""The beginnings of the names of modules that a session imports besides those of `LISTED`."""


def test_a_second_session_imports_no_operation_kinds_and_no_other_formats(tmp_path: Path) -> None:
    helper = pytest.importorskip("onnx.helper", reason="the package onnx is not installed")
    model = tmp_path / "sum.onnx"
    names = [helper.make_tensor_value_info(name, 1, ["n", 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "sum", names[:1], names[1:])
    model.write_bytes(
        helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    _, _, read = _twice(RUN_A_SESSION, model, tmp_path)
    assert {*COMPILING, *UNUSUAL, "json", "zipfile"}.isdisjoint(read)
    own = {module for module in read if module.startswith("onert") and not module.startswith(SESSION_ONLY)}
    assert own <= LISTED


VARIABLE = """
import sys
import numpy as np
import onert
execution = onert.Execution(onert.compile(onert.load(sys.argv[1])))
x = np.ones(execution.program.inputs[0].shape, execution.program.inputs[0].dtype.numpy)
print([next(iter(execution.run([x]).values())).tolist() for _ in range(2)])
print(*sorted(sys.modules))
"""


def _sum_of_inputs() -> bytes:
    """A model with a variable that is 0 at first, and that each run adds its input to."""
    built = Model()
    graph, once = built.graph(), built.graph("once")
    x, before, total = graph.input(DType.FLOAT32, (1, 1)), *(graph.tensor(DType.FLOAT32, (1, 1)) for _ in range(2))
    handle, handle_once = (each.tensor(DType.RESOURCE, ()) for each in (graph, once))
    graph.operator("CALL_ONCE", [], [], ("CallOnceOptions", {"initSubgraphIndex": 1}))
    graph.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"sharedName": "sum"}))
    graph.operator("READ_VARIABLE", [handle], [before])
    graph.operator("ADD", [x, before], [total], ("AddOptions", {}))
    graph.operator("ASSIGN_VARIABLE", [handle, total], [])
    graph.outputs(total)
    once.operator("VAR_HANDLE", [], [handle_once], ("VarHandleOptions", {"sharedName": "sum"}))
    once.operator("ASSIGN_VARIABLE", [handle_once, once.constant(np.zeros((1, 1), np.float32))], [])
    return built.done()


def test_a_second_process_needs_no_operations_for_a_model_with_variables(tmp_path: Path) -> None:
    model = tmp_path / "sums.tflite"
    model.write_bytes(_sum_of_inputs())
    sums, _, read = _twice(VARIABLE, model, tmp_path)
    assert sums == "[[[1.0]], [[2.0]]]"
    assert not _operation_kinds(read)


RUN_AN_INTERPRETER = """
import sys
import numpy as np
import onert
from onert.compiler.program_cache import other_shapes
other_shapes.WORTH_CACHING = 0.0
interpreter = onert.Interpreter(sys.argv[1])
interpreter.allocate_tensors()
for detail in interpreter.get_input_details():
    interpreter.set_tensor(detail["index"], np.ones(detail["shape"], detail["dtype"]))
interpreter.invoke()
print(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist())
print(*sorted(sys.modules))
"""
INTERPRETER_ONLY = {
    "onert.compiler.program_cache.interfaces",
    *(f"onert.runtime.{name}" for name in ("details", "errors", "interpreter", "runner")),
}


def test_a_second_interpreter_parses_no_model(tmp_path: Path) -> None:
    model = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"
    _, _, read = _twice(RUN_AN_INTERPRETER, model, tmp_path)
    assert {module for module in read if module.startswith("onert")} - INTERPRETER_ONLY <= LISTED


_REST = "OPENBLAS_THREAD_TIMEOUT"

OF_OTHER_FILES = (
    "onert.exec.observers.trace",
    "onert.frontend.metadata.reading",
    "onert.image",
    "onert.tools.answers.heads",
    *(f"onert.tools.{name}" for name in ("drawing.drawing", "inputs.images", "inputs.sounds", "inputs.videos")),
)
"""Modules that a command needs for pictures, sounds and videos only."""

RUN_FROM_A_SHELL = """
import sys
from onert.compiler.program_cache import other_shapes
from onert.tools.run import main
other_shapes.WORTH_CACHING = 0.0
assert main([sys.argv[1]]) == 0
print(*sorted(sys.modules))
"""


def test_a_second_onert_run_imports_no_compiler_operation_kinds_or_other_formats(tmp_path: Path) -> None:
    model = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"
    read = set([_said(RUN_FROM_A_SHELL, model, tmp_path) for _ in range(2)][-1][-1].split())
    assert {*COMPILING, *OF_OTHER_FILES, "onert.compiler.scheduler", "onert.frontend.onnx.messages"}.isdisjoint(read)
    assert not _operation_kinds(read)


def test_starting_up_generates_no_comparison_or_repr_methods() -> None:
    """Classes of `onert.ir.value` inherit them; attrs needs a tenth of a millisecond to generate them for a class
    without.
    """
    read = [importlib.import_module(name) for name in sorted(LISTED)]
    own = [each for module in read for each in vars(module).values() if isinstance(each, type) and attrs.has(each)]
    methods = [getattr(vars(each).get(method), "__code__", None) for each in own for method in ("__eq__", "__repr__")]
    assert own
    assert not [code for code in methods if code is not None and "attrs" in code.co_filename]


@pytest.mark.parametrize(
    ("name", "given", "expected"), [("onert_run", {}, "20"), ("onert_run", {_REST: "26"}, "26"), ("a.py", {}, None)]
)
def test_the_linear_algebra_thread_timeout_is_set_only_in_commands(
    name: str, given: dict[str, str], expected: str | None, tmp_path: Path
) -> None:
    script = tmp_path / name
    script.write_text(f"import onert, os\nprint(os.environ.get('{_REST}'))\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != _REST} | given
    said = subprocess.run(
        [sys.executable, str(script)], check=True, capture_output=True, text=True, env=environment
    ).stdout
    assert said.strip() == str(expected)
