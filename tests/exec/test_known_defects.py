"""Known defects of the public runtime that this one does not have, one test for each."""

from __future__ import annotations

import gc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from compiler.toy import Draft, ToyBackend, ToyScale, ToyVeil
from shared_material import REPOSITORY

import onert
from onert.compiler import Options, compile
from onert.exec import Execution
from onert.ir import ExecutionError, Package, Subgraphs

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"


def test_an_execution_keeps_the_arrays_it_was_given_alive() -> None:
    program = onert.compile(onert.load(DIGITS))
    shape = program.inputs[0].type.shape
    expected = onert.Execution(program).run([np.full(shape, 0.5, np.float32)])
    execution = onert.Execution(program)
    execution.set_input(0, np.full(shape, 0.5, np.float32))  # without another reference
    gc.collect()
    garbage = [np.full(shape, np.nan, np.float32) for _ in range(64)]
    execution.execute()
    assert len(garbage) == 64
    assert execution.get_output(0).tobytes() == next(iter(expected.values())).tobytes()


def test_an_input_may_be_resized_back_to_its_first_shape() -> None:
    d = Draft()
    x = d.input(2, 3, name="x")
    graph = d.graph(d.op(ToyScale(3.0), d.op(ToyScale(2.0), x)))
    execution = Execution(compile(Package((Subgraphs((graph,)),)), Options(), [ToyBackend("builtin")]))
    for rows in (2, 5, 2, 1, 2):
        execution.set_input_shape("x", (rows, 3))
        (out,) = execution.run([np.ones((rows, 3), np.float32)]).values()
        assert out.tolist() == [[6.0] * 3] * rows


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zipped_package_gives_the_same_results(tmp_path: Path, method: int) -> None:
    archive = tmp_path / "digits.zip"
    with zipfile.ZipFile(archive, "w", method) as target:
        for path in sorted(DIGITS.rglob("*")):
            target.write(path, Path("digits_float") / path.relative_to(DIGITS))
    x = np.full(onert.compile(onert.load(DIGITS)).inputs[0].type.shape, 0.25, np.float32)
    folder, zipped = (onert.Execution(onert.compile(onert.load(p))).run([x]) for p in (DIGITS, archive))
    assert {k: v.tobytes() for k, v in folder.items()} == {k: v.tobytes() for k, v in zipped.items()}


def test_the_size_of_a_dynamic_output_is_unknown_until_the_run() -> None:
    d = Draft()
    graph = d.graph(d.op(ToyVeil(), d.input(4, name="x")))
    program = compile(Package((Subgraphs((graph,)),)), Options(), [*onert_reference()])
    assert program.outputs[0].shape == (None,)
    execution = Execution(program)
    (out,) = execution.run([np.ones(4, np.float32)]).values()
    assert out.shape == (4,)
    with pytest.raises(ExecutionError, match="known only at run time; get_output reads it"):
        execution.set_output(0, np.zeros(4, np.float32))


def onert_reference() -> tuple[onert.backend.Backend, ...]:
    return onert.backend.registry.load_backends(["reference"])


def test_the_exception_contains_the_error_message() -> None:
    execution = onert.Execution(onert.compile(onert.load(DIGITS)))
    with pytest.raises(onert.OnertError) as caught:
        execution.run([np.zeros((1, 3), np.float32)])
    assert "input 'serving_default_image:0' is given shape [1, 3], expected [" in str(caught.value)
