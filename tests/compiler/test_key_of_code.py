"""The key of the program cache: code, libraries, machine and backends, identically in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shared_material import REPOSITORY

import onert_builtin.backend
import onert_llvm.codegen.fingerprint
import onert_reference.backend
from onert.backend import Backend, Settings
from onert.backend.cache import DISTRIBUTION
from onert.backend.registry import load_backends
from onert.compiler.options import Options
from onert.compiler.program_cache import key
from onert_llvm.target import isa

from .cached import PLAIN, SHAPES, Cached, caching, check_apart, forget


@pytest.fixture
def cached(tmp_path: Path) -> Iterator[Cached]:
    with caching(tmp_path) as found:
        yield found


# ---- code and machines


def least(*_: object) -> dict[str, bool]:
    """A processor with only the features that all of its kind have."""
    return {}


PROCESS: Mapping[str, tuple[object, str, Any]] = {
    "sources": (
        key,
        "installed",
        lambda folder, which: "other" if which == DISTRIBUTION else which,
    ),
    "python": (sys, "hexversion", 1),
    **{
        name: (
            key,
            "installed",
            lambda folder, which, name=name: "other" if which == name else which,
        )
        for name in key.LIBRARIES
    },
    "machine": (os, "uname", lambda: SimpleNamespace(machine="other")),
    "processor": (key, "_features", least),
}
"""For each component that describes the process: where it is looked up, and another answer."""

FINGERPRINTS: Mapping[str, tuple[object, str, Any]] = {
    **{
        label: (
            onert_llvm.codegen.fingerprint,
            "installed",
            lambda _, which, name=name: "" if which == name else which,
        )
        for label, name in (("sources of llvm", DISTRIBUTION), ("llvmlite", "llvmlite"))
    },
    "library of llvmlite": (onert_llvm.codegen.fingerprint, "_sizes", lambda folder: "other"),
    "processor for llvm": (isa, "_host_features", least),
    "figures of the processor": (isa, "processor", lambda: "another : first_cache=65536"),
    "sources of reference": (onert_reference.backend, "installed", lambda folder, which: "other"),
    "sources of builtin": (onert_builtin.backend, "installed", lambda folder, which: "other"),
}
"""Likewise for the components of the backends' fingerprints."""


def test_every_component_of_the_process_is_tested(cached: Cached) -> None:
    assert key.process().keys() == PROCESS.keys()
    assert {"sources", "python", "attrs", "ml_dtypes", "numpy", "machine", "processor"} <= PROCESS.keys()
    assert all(key.process().values())


@pytest.mark.parametrize("name", [*PROCESS, *FINGERPRINTS])
def test_code_libraries_and_machine_are_part_of_the_key(
    name: str, cached: Cached, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "processor for llvm" and isa.runnable()[-1] == isa.runnable()[0]:
        pytest.skip("this processor has only the features that all of its kind have")
    where, attribute, answer = {**PROCESS, **FINGERPRINTS}[name]
    if attribute == "installed":  # several components use it
        monkeypatch.setattr(where, attribute, lambda folder, which: which)
        forget()
    before = cached.facts(PLAIN, input_shapes=SHAPES)
    assert cached.count == 1
    with monkeypatch.context() as patch:
        patch.setattr(where, attribute, answer)
        forget()
        assert cached.facts(PLAIN, input_shapes=SHAPES)[-1] == before[-1]
        assert cached.count == 2
    forget()
    assert cached.facts(PLAIN, input_shapes=SHAPES) == before
    assert cached.count == 2


BACKENDS = {"others": ("reference",), "in another order": ("reference", "builtin", "llvm")}


@pytest.mark.parametrize("names", BACKENDS.values(), ids=BACKENDS)
def test_the_backends_in_use_are_part_of_the_key(names: tuple[str, ...], cached: Cached) -> None:
    base: dict[str, Any] = {"input_shapes": SHAPES}
    check_apart(cached, lambda: cached.facts(PLAIN, **base), lambda: cached.facts(PLAIN, **base, backends=names))


def test_backends_with_different_names_have_different_keys() -> None:
    class Named(Backend):
        def __init__(self, name: str) -> None:
            self.name = name  # type: ignore[misc]

        def fingerprint(self, settings: Settings) -> str:
            return "the same"

    found = [key.components(PLAIN, Options(), [Named(name)], ()) for name in ("one", "two", "one")]
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize("name", ["reference", "llvm", "builtin"])
def test_a_program_of_a_backend_without_a_fingerprint_is_not_cached(
    name: str, cached: Cached, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends = {b.name: type(b) for b in load_backends()}
    monkeypatch.setattr(backends[name], "fingerprint", lambda backend, settings: None)
    for count in (1, 2):
        cached.facts(PLAIN, input_shapes=SHAPES)
        assert cached.count == count


# ---- another process

SCRIPT = """
import sys
import numpy as np
import onert
from onert.compiler.program_cache import other_shapes
from onert.backend import Backend, Settings
from onert.backend.writers import WRITERS
from compiler.cached import graph, packaged, ADD, MUL, SHAPES
other_shapes.WORTH_CACHING = 0.0
compiled = []
compiler = other_shapes._compiler
other_shapes._compiler = lambda: compiled.append(1) or compiler()
package = packaged(graph(ADD, np.float32([float(sys.argv[1])] * 4)), graph(MUL))
passes = frozenset({"fold_constants", "remove_identities", "merge_transposes", "fuse_padding"})
options = dict(input_shapes=SHAPES, num_threads=1, op_backend={"MUL": "reference"}, disabled_passes=passes)
program = onert.compile(package, **options)
WRITERS.finish()
(y,) = onert.Execution(program).run([np.zeros((1, 4), np.float32)]).values()
print(len(compiled), *y.reshape(-1))
"""


def test_another_process_finds_exactly_the_same_programs(tmp_path: Path) -> None:
    printed = []
    for seed, weight in (("1", "2"), ("2", "2"), ("3", "5"), ("4", "5")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "ONERT_CACHE_DIR": str(tmp_path),
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH", "")]),
        }
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, weight], check=True, capture_output=True, text=True, env=environment
        )
        printed.append(done.stdout.strip())
    two, five = " ".join(["2.0"] * 4), " ".join(["5.0"] * 4)
    assert printed == [f"1 {two}", f"0 {two}", f"1 {five}", f"0 {five}"]
