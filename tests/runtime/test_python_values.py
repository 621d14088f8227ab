"""How values behave in Python: repr, pickling, hashing, names and types."""

from __future__ import annotations

import pickle
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest
from attrs import fields
from cases import all_cases
from shared_material import REPOSITORY

import onert
from onert.compiler.settings.option_fields import OptionFields

EXAMPLES = REPOSITORY / "nnpackage" / "examples"
DIGITS = EXAMPLES / "digits_float"
X = np.random.default_rng(0).uniform(0, 1, (1, 8, 8, 1)).astype(np.float32)
SOURCES = {"package": DIGITS, "file": DIGITS / "digits_float.tflite", "quantised": EXAMPLES / "digits_int8"}


def test_values_have_a_one_line_repr() -> None:
    package = onert.load(DIGITS)
    program = onert.compile(package, backends=("reference",), num_threads=1)
    said = repr(program)
    for part in (
        "'digits_float'",
        "'serving_default_image:0' f32[1, 8, 8, 1]",
        "f32[1, 10]",
        "reference 8",
        "constants",
    ):
        assert part in said
    assert repr(package) == "<Package 'digits_float'>"
    assert repr(onert.Execution(program)) == f"<Execution of {said}>"
    assert len(said) < 400


def test_a_notebook_shows_a_table_with_names_escaped() -> None:
    program = onert.compile(onert.load(DIGITS), num_threads=1)
    html = program._repr_html_()
    assert html.startswith("<table>")
    assert "f32[1, 8, 8, 1]" in html
    hostile = onert.Package(onert.load(DIGITS).models, "<script>alert(1)</script>\x1b[2J")
    assert "<script>" not in onert.compile(hostile, num_threads=1)._repr_html_()


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_packages_can_be_pickled_and_hashed(source: Path) -> None:
    package = onert.load(source)
    again = pickle.loads(pickle.dumps(package))
    assert again == package
    assert len({package, again, onert.load(source)}) == 1


def test_operations_can_be_pickled() -> None:
    for case in all_cases():
        assert pickle.loads(pickle.dumps(case.op)) == case.op, case.name


def test_a_program_is_pickled_as_its_package_and_options() -> None:
    program = onert.compile(onert.load(DIGITS), backends=("reference",), num_threads=1, executor="Dataflow")
    again = pickle.loads(pickle.dumps(program))
    assert (again.inputs, again.outputs, again.executor) == (program.inputs, program.outputs, "Dataflow")
    assert again.backends == {"reference": 8}
    first, second = (next(iter(onert.Execution(p).run([X]).values())) for p in (program, again))
    np.testing.assert_array_equal(first, second)


def test_pickling_a_specialised_program_is_refused_with_advice() -> None:
    program = onert.compile(onert.load(DIGITS), num_threads=1)
    with pytest.raises(onert.CompileError, match="for other shapes, compile with input_shapes"):
        pickle.dumps(onert.Execution(program).program.specialize({0: (1, 8, 8, 1)}))


def test_options_and_errors_can_be_pickled() -> None:
    options = onert.Options(num_threads=1, backends=("reference",), input_shapes={"x": (1,)})
    assert pickle.loads(pickle.dumps(options)) == options
    with pytest.raises(onert.OnertError) as caught:
        onert.Options(num_threads=0)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_options_accept_lists_sets_and_paths(tmp_path: Path) -> None:
    options = onert.Options(backends=["llvm"], disabled_passes={"legalize"}, workspace_dir=tmp_path, extensions=[])  # type: ignore[arg-type]
    assert options == onert.Options(("llvm",), disabled_passes=frozenset({"legalize"}), workspace_dir=str(tmp_path))


def test_dir_lists_all_public_names_imported_or_not() -> None:
    assert set(onert.__all__) <= set(dir(onert))
    assert not any(name.startswith("_") and name != "__version__" for name in dir(onert))
    for name in dir(onert):
        assert getattr(onert, name) is not None


def test_the_keywords_of_compile_are_the_fields_of_options() -> None:
    wanted = {field.name for field in fields(onert.Options)} - {"fixed"}
    assert OptionFields.__annotations__.keys() == wanted
    assert typing.get_type_hints(
        onert.compile, include_extras=True, localns=vars(typing) | {"OptionFields": OptionFields}
    )["overrides"]


SCRIPT = """
import numpy as np
import onert

program: onert.Program = onert.compile(onert.load("m.tflite"), backends=("llvm",), input_shapes={0: (1, 8)})
outputs: dict[str, np.ndarray] = onert.Execution(program).run({"x": np.zeros((1, 8), np.float32)})
"""


@pytest.mark.long
@pytest.mark.parametrize(("added", "errors"), [("", 0), ("onert.compile(onert.load('m'), num_threads='2')", 1)])
def test_a_typed_script_is_checked_against_the_library(tmp_path: Path, added: str, errors: int) -> None:
    (tmp_path / "script.py").write_text(SCRIPT + added)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("error:") == errors, done.stdout
    for folder in ("onert", *(f"backends/onert_{name}" for name in ("reference", "builtin", "llvm"))):
        assert (REPOSITORY / folder / "py.typed").is_file()
