"""One execution matches ONNX Runtime at any input size, whatever sizes it ran before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from attrs import evolve
from llvm.natively import by_width, in_turn
from onnx_peer import precise_session
from open_layers import LAYERS as SIMPLE
from open_positions import POSITIONS

import onert
from onert.ir.symbolic.leaks import LeakError, require_plain
from onert_llvm.codegen import kernel_abi
from onert_llvm.target import isa

LAYERS = SIMPLE | POSITIONS


@pytest.fixture(autouse=True)
def leaks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The symbolic numbers found in kernel descriptions, of which there must be none."""
    found: list[str] = []

    def watched(value: object, text: str) -> None:
        try:
            require_plain(value, text)
        except LeakError as error:
            found.append(str(error))
            raise

    monkeypatch.setattr(kernel_abi, "require_plain", watched)
    yield found
    assert not found


_BYTES = 0.0501
"""Tolerance for byte results: one quantisation step, because sums of bytes are rounded once here."""


def check(name: str, rounds: int) -> None:
    """Require ONNX Runtime's results from one execution of a layer at this many random sizes."""
    layer, random = LAYERS[name], np.random.default_rng(rounds)
    session = precise_session(layer.content)
    threads = 1 + len(name) % 2
    execution = onert.Execution(onert.compile(onert.load(layer.content), num_threads=threads))
    for number in range(rounds):
        inputs = layer.drawn(random, small=number % 3 == 0)
        (expected,) = session.run(["y"], inputs)
        (found,) = execution.run(inputs).values()
        assert found.shape == expected.shape
        largest = np.abs(expected).max(initial=1)
        allowed = _BYTES if "bytes" in name else 2e-4 * largest
        sizes = {key: array.shape for key, array in inputs.items()}
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=allowed, err_msg=f"{number}: {sizes}")


BRIEF, LONG = 14, 100


@pytest.mark.parametrize(
    "rounds", [pytest.param(BRIEF, id="brief"), pytest.param(LONG, id="long", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_matches_onnx_runtime_at_sizes_in_any_order(
    name: str, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With registers of a width in turn, in the long suite of every width."""
    position, widths = list(LAYERS).index(name), by_width(isa.runnable(), lambda each: each)
    targets = in_turn(position, widths) if rounds == BRIEF else [each[position % len(each)] for each in widths]
    for target in targets:
        monkeypatch.setattr(isa, "_native", lambda _, processor, target=target: evolve(target, processor=processor))
        check(name, rounds)
