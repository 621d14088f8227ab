"""The architecture's rules that a machine can check."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shared_material import REPOSITORY
from structure import absolute, cycles, module_of, modules, siblings, source, sources, sources_in

from onert.ir import OPS

GENERATED = {
    "onert/frontend/tflite_schema/schema_tables.py",
    "onert/frontend/tflite_schema/table/builtins.py",
}
MAX_LINES = 400
MAX_FILES = 15
"""In a folder, not counting `__init__`."""
AVOIDED = {"manager", "helper", "helpers", "util", "utils", "handler", "info", "common", "base", "misc"}

MAY_IMPORT: dict[str, tuple[set[str], set[str]]] = {
    # package: the project's packages and the third-party packages that it may import
    "onert.ir": (set(), {"numpy", "attrs", "ml_dtypes", "PIL", "re2"}),
    "onert.backend": ({"onert.ir"}, {"numpy", "attrs"}),
    "onert.frontend": ({"onert.ir"}, {"flatbuffers", "circle_schema", "numpy", "attrs", "h5py"}),
    "onert.compiler": ({"onert.ir", "onert.backend"}, {"numpy", "attrs"}),
    "onert.exec": ({"onert.ir", "onert.backend"}, {"numpy", "attrs"}),
    "onert.image": ({"onert.ir", "onert.backend"}, {"numpy", "attrs"}),
    "onert.bundle": ({"onert.ir", "onert.backend", "onert.compiler"}, {"numpy", "attrs"}),
    "onert.runtime": (
        {"onert.ir", "onert.backend", "onert.frontend", "onert.compiler", "onert.exec"},
        {"numpy", "attrs"},
    ),
    "onert.capi": ({"onert.runtime"}, set()),
    "onert.host": (
        {"onert.ir", "onert.backend", "onert.frontend", "onert.compiler", "onert.exec", "onert.runtime"},
        {"numpy", "attrs", "ray"},
    ),
    "onert.serve": (
        {"onert.ir", "onert.backend", "onert.compiler", "onert.runtime", "onert.host"},
        {"numpy", "attrs", "google", "grpc", "starlette", "uvicorn", "uvloop"},
    ),
    "onert.flow": (
        {"onert.ir", "onert.backend", "onert.frontend", "onert.compiler", "onert.exec", "onert.runtime"},
        {"numpy", "attrs", "tensorflow"},
    ),
    "onert.tools": (
        {
            "onert.ir",
            "onert.backend",
            "onert.frontend",
            "onert.compiler",
            "onert.exec",
            "onert.runtime",
            "onert.host",
            "onert.serve",
            "onert.bundle",
            "onert.image",
        },
        {"numpy", "attrs", "rich", "h5py", "PIL", "av", "soundfile", "ai_edge_litert", "openvino", "onnxruntime"},
    ),
    "onert_reference": ({"onert.ir", "onert.backend"}, {"numpy", "attrs"}),
    "onert_builtin": ({"onert.ir", "onert.backend"}, {"numpy", "attrs"}),
    "onert_llvm": ({"onert.ir", "onert.backend"}, {"numpy", "attrs", "llvmlite"}),
}
HEAVY = {
    "h5py",
    "PIL",
    "av",
    "soundfile",
    "re2",
    "tensorflow",
    "ai_edge_litert",
    "openvino",
    "onnxruntime",
    "llvmlite",
    "importlib.metadata",
}
"""Modules that may be imported inside a function: optional, or too slow to import before they are needed."""


def maintained_files() -> list[Path]:
    """All files including tests, examples and documentation, but no generated ones."""
    found = sources_in("onert", "backends", "tests", "docs", "nnpackage")
    return [p for p in found if str(p.relative_to(REPOSITORY)) not in GENERATED]


def package_of(module: str) -> str | None:
    """The table row that a module belongs to; None for the top of `onert`, which may import everything."""
    return next((name for name in MAY_IMPORT if module == name or module.startswith(name + ".")), None)


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The absolute names that a file imports, each with whether that happens inside a function."""
    for node, inside in source(path).imports:
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, inside
        else:
            base = absolute(node, path)
            yield base, inside
            if base == "onert":
                for name in node.names:
                    yield f"onert.{name.name}", inside


def may_import(package: str, name: str) -> bool:
    """Whether a package's table row allows an import."""
    own, others = MAY_IMPORT[package]
    top = name.split(".")[0]
    if top == "onert" or top.startswith("onert_"):
        target = package_of(name)
        return target == package or target in own or (target is None and (package == "onert.tools" or name == "onert"))
    return top in sys.stdlib_module_names or top in others


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in sources()}), ids=lambda p: str(p.relative_to(REPOSITORY))
)
def test_files_have_docstrings_import_only_lower_layers_and_contain_no_todo(folder: Path) -> None:
    for path in (path for path in sources() if path.parent == folder):
        package = package_of(module_of(path))
        found = list(imports(path))
        assert package is not None or module_of(path) in ("onert", "onert.__main__"), path
        assert [name for name, inside in found if inside and not {name.split(".")[0], name} & HEAVY] == [], path
        assert [name for name, _ in found if package is not None and not may_import(package, name)] == [], path
        assert path.stem not in AVOIDED, path
        assert source(path).docstring, path
        assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b", source(path).text), path
        assert not re.search(r"[\"'(]/(work|home|root|tmp)/", source(path).text), path


def test_files_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in maintained_files()}
    assert {path: count for path, count in lengths.items() if count > MAX_LINES} == {}


FOLDERS = sorted({path.parent for path in sources()} - {REPOSITORY / "backends"})
PACKAGES = sorted(name for name, path in modules().items() if path.name == "__init__.py")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_folders_are_small(folder: Path) -> None:
    assert (folder / "__init__.py").is_file()
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MAX_FILES


@pytest.mark.parametrize("package", PACKAGES)
def test_the_members_of_a_package_import_one_another_without_cycles(package: str) -> None:
    assert list(cycles(siblings(package))) == []


def test_import_cycles_are_detected() -> None:
    assert list(cycles({"a": {"b"}, "b": {"c"}, "c": set()})) == []
    assert list(cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}})) == [("b", "c"), ("d",)]


@pytest.mark.parametrize("name", sorted(n for n, op in OPS.items() if op.__module__.startswith("onert.")))
def test_every_operation_has_a_docstring(name: str) -> None:
    doc = OPS[name].__doc__
    assert doc is not None
    assert len(doc.split()) >= 5


def test_no_module_unpickles_or_otherwise_runs_code_from_files() -> None:
    """How to pickle programs is registered with `copyreg`, because users may pickle them."""
    forbidden = ("pickle", "marshal", "shelve", "dill", "cloudpickle")
    texts = {p: p.read_text() for folder in ("onert", "backends") for p in (REPOSITORY / folder).rglob("*.py")}
    assert len(texts) > 300
    for path, text in texts.items():
        if any(name in text for name in forbidden):
            for node in ast.walk(ast.parse(text)):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                keywords = node.keywords if isinstance(node, ast.Call) else []
                allowed = [k.value for k in keywords if k.arg == "allow_pickle"]
                if names or allowed:
                    assert not {name.partition(".")[0] for name in names} & {*forbidden}, path
                    assert all(isinstance(each, ast.Constant) and each.value is False for each in allowed), path


_LOWERED = "backends/onert_llvm"
EXAMPLES: dict[str, tuple[str, set[str]]] = {
    "an element-wise function": (
        "ASINH",
        {
            "onert/ir/ops/elementwise/unary.py",
            "onert/frontend/flow/table/elementwise.py",
            f"{_LOWERED}/lower/elementwise/op_to_expression.py",
            "tests/cases/elementwise.py",
            "tests/cases/onnx.py",
        },
    ),
    "an operation with a decomposition": (
        "PooledPlaces",
        {
            "onert/ir/ops/data_movement/columns.py",
            "tests/cases/onnx_pictures.py",
            "onert/frontend/onnx/table/layers/pooled_indices.py",
            "onert/compiler/legalize/windows.py",
            "onert/compiler/legalize/decomposition.py",
        },
    ),
    "an operation with a native kernel": (
        "CoupledProbabilities",
        {
            "onert/ir/ops/reduction/coupling.py",
            "tests/cases/onnx_pictures.py",
            "onert/frontend/onnx/table/learning/support_vectors.py",
            f"{_LOWERED}/kernels/reduction/coupling.py",
            f"{_LOWERED}/lower/reduction/coupling.py",
            f"{_LOWERED}/rules/lazy_rules.py",
        },
    ),
    "a pass": ("compare_bytes", {"onert/compiler/passes/quantized/compare_bytes.py", "onert/compiler/pipeline.py"}),
}
"""Rows of the architecture page's table of files to touch: a name, and the product files and cases that contain it."""


@pytest.mark.parametrize(("name", "places"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_a_name_occurs_exactly_in_the_files_that_the_page_lists(name: str, places: set[str]) -> None:
    files = sources_in("onert", "backends", "tests/cases")
    found = {str(path.relative_to(REPOSITORY)) for path in files if re.search(rf"\b{name}\b", source(path).text)}
    assert found == places
