"""With `overlap` inputs and outputs are part of the memory plan: less memory, the same results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

from . import toys
from .machines import HOST, needs_compiler, run

pytestmark = needs_compiler

FLOATS = TensorType(DType.FLOAT32, (64, 16))


def _chain() -> Package:
    """An input used last, an unused one, one that is also an output, and an output computed first."""
    b = Builder()
    x, late, unused, through = (b.input(FLOATS, name) for name in ("x", "late", "unused", "through"))
    del unused
    early = b.add(Unary(UnaryKind.TANH), x)
    y = early
    for _ in range(3):
        y = b.add(Unary(UnaryKind.SIN), b.add(Binary(BinaryKind.ADD), y, through))
    return Package((b.model([early, through, b.add(Binary(BinaryKind.SUB), y, late)]),), "chain")


def _wide() -> Package:
    """Large inputs, intermediates and outputs, only few of them live at once."""
    b = Builder()
    x = b.input(FLOATS, "x")
    y = b.add(Unary(UnaryKind.EXP), x)
    for kind in (UnaryKind.SIN, UnaryKind.COS, UnaryKind.TANH):
        y = b.add(Binary(BinaryKind.ADD), y, b.add(Unary(kind), y))
    return Package((b.model([y]),), "wide")


def _digits() -> Package:
    package = onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_int8")
    assert isinstance(package, Package)
    return package


@pytest.mark.parametrize("make", [toys.network, toys.counter, _chain, _wide, _digits], ids=lambda m: m.__name__)
def test_overlap_keeps_the_results_and_needs_no_more_memory(tmp_path: Path, make: object) -> None:
    assert callable(make)
    package = make()
    apart = onert.bundle(package, tmp_path / "apart", cpu="native")
    files = onert.bundle(package, tmp_path / "overlap", cpu="native", overlap=True)
    assert files.mutables + files.activations <= apart.mutables + apart.activations
    inputs = toys.random_inputs(onert.compile(package, num_threads=1).inputs)
    code, outputs = run(HOST, tmp_path / "overlap", inputs)
    assert code == 0
    for found, wanted in zip(outputs, toys.reference(package, inputs), strict=True):
        toys.require_close(found, wanted)


def test_inputs_and_outputs_share_memory(tmp_path: Path) -> None:
    files = onert.bundle(_wide(), tmp_path, overlap=True)
    assert files.mutables == 2 * FLOATS.nbytes
    assert "A call overwrites inputs" in files.paths["h"].read_text()


def test_state_persists_outside_the_overlapped_memory(tmp_path: Path) -> None:
    onert.bundle(toys.counter(), tmp_path, overlap=True)
    loaded = onert.load_bundle(tmp_path)
    ones = np.ones(3, np.float32)
    totals = [next(iter(loaded.run([ones]).values())).tolist() for _ in range(3)]
    assert totals == [[n] * 3 for n in (1.0, 2.0, 3.0)]


def test_entry_points_share_one_memory(tmp_path: Path) -> None:
    package = toys.halves()
    files = onert.bundle(package, tmp_path, signatures=("encode", "decode:0"), overlap=True)
    loaded = onert.load_bundle(tmp_path)
    x = np.ones((1, 5), np.float32)
    for entry, key in zip(loaded.entries, ("encode", "decode:0"), strict=True):
        (found,) = loaded.run([x], entry).values()
        toys.require_close(found, *toys.reference(package, [x], signature=key))
    assert files.mutables == 2 * 64


def test_overlap_is_rejected_together_with_shared_variables(tmp_path: Path) -> None:
    with pytest.raises(onert.OnertError, match="overlap"):
        onert.bundle(toys.halves(), tmp_path, signatures=("encode", "decode:0"), overlap=True, share=True)
