"""No code is generated for a symbolic number: a kernel's description that contains one is an error."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from compilations import compilations
from open_layers import LAYERS

import onert
from onert.ir.symbolic.leaks import LeakError, require_plain
from onert.ir.symbolic.trace import Trace
from onert_llvm import compile
from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.kernels.contraction.epilogue import PLAIN
from onert_llvm.kernels.contraction.register_tile import Columns, Tile
from onert_llvm.lower.reduction import block
from onert_llvm.target.isa import target

from .contractions import gemm_f32


def _length() -> Any:
    return Trace([6], [24]).lengths[0]


def test_a_kernel_description_with_a_symbolic_number_is_rejected() -> None:
    isa = target("x86-64-v3")
    algorithms = [gemm_f32(Tile(4, Columns(2, tail)), PLAIN) for tail in (6, int(_length()), _length())]
    assert len({KernelSpec(algorithm, isa).symbol for algorithm in algorithms[:2]}) == 1
    with pytest.raises(LeakError, match=r"^Contraction\.tile\.columns\.tail is 6, a symbolic number"):
        KernelSpec(algorithms[2], isa)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        pytest.param(_length(), "Symbolic", id="itself"),
        pytest.param((1, [2, _length() + 1]), r"tuple\[1\]\[1\]", id="sequence"),
        pytest.param({"n": _length()}, r"dict\[n\]", id="mapping"),
        pytest.param(np.array([_length()], object), r"array\(\[Symbolic\(6\)\].*", id="elsewhere"),
    ],
)
def test_a_symbolic_number_in_any_container_is_found(value: object, place: str) -> None:
    with pytest.raises(LeakError, match=f"^{place}.*a symbolic number"):
        require_plain(value, repr(value))


def test_after_a_leak_each_length_is_compiled_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, leaks, lowered = compilations(monkeypatch), list[str](), compile.lowered

    def watched(*args: Any) -> Any:
        try:
            return lowered(*args)
        except LeakError as error:
            leaks.append(str(error))
            raise

    monkeypatch.setattr(compile, "lowered", watched)
    monkeypatch.setattr(block, "int", lambda number: number, raising=False)
    execution = onert.Execution(onert.compile(onert.load(LAYERS["ReduceSum [1]"].content)))
    for length in range(7, 12):
        x = np.random.default_rng(length).integers(-9, 9, (2, 3, length)).astype(np.float32)
        (found,) = execution.run({"x": x}).values()
        np.testing.assert_array_equal(found.ravel(), x.sum(1).ravel())
    assert len(compiled) > 5
    assert leaks
    pattern = r"node 0 ReduceSum: ReduceColumns\.vectors is \d, a symbolic number"
    assert all(re.match(pattern, each) for each in leaks)
