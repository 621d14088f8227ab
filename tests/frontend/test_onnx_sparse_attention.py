"""Attention to some blocks of a cache of keys and values, as Phi-3-small has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from frontend.onnx_domain_cases import MICROSOFT, Constant, floats
from frontend.onnx_one_node import one_node_model
from onnx_peer import precise_session

import onert
from onert.ir import Array

runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the peer")

_HEADS, _OWN, _N, _ROOM, _BLOCK = 4, 2, 16, 64, 16
_LAYOUTS = (
    Constant(np.int32([[0, 1, 3, 5, 8], [0, 1, 3, 6, 9]])),
    Constant(np.int32([[0, 0, 1, 1, 2, 1, 2, 3, -1], [0, 0, 1, 0, 1, 2, 0, 2, 3]])),
)
_ONE_LAYOUT = (Constant(np.int32([[0, 1, 2, 4, 5]])), Constant(np.int32([[0, 1, 0, 2, 3]])))
_ANGLES = floats(_ROOM, _N // 2)
_ATTRIBUTES = {"num_heads": _HEADS, "kv_num_heads": _OWN, "sparse_block_size": _BLOCK}
_OPEN = {0: (0, 1), 1: (0, 1), 2: (0, 1), 3: (0, 2), 4: (0, 2), 8: (0,)}


def _inputs(tokens: int, totals: tuple[int, ...], layouts: Any, *tables: Array, packed: bool = False) -> Any:
    batch = len(totals)
    widths = ((_HEADS + 2 * _OWN) * _N,) if packed else (_HEADS * _N, _OWN * _N, _OWN * _N)
    given = [floats(batch, tokens, width) for width in widths] + [None] * (3 - len(widths))
    caches = [floats(batch, _OWN, _ROOM, _N) for _ in range(2)]
    return (*given, *caches, *layouts, np.int32([max(totals)]), np.int32(totals), *tables)


def _peer(model: bytes, feed: dict[str, Array]) -> list[Array]:
    """ONNX Runtime's results: it writes to the caches, which are inputs and results at once."""
    session = precise_session(model)
    binding, kept = session.io_binding(), {name: x.copy() for name, x in feed.items()}
    values = {name: runtime.OrtValue.ortvalue_from_numpy(x) for name, x in kept.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y0")
    for result, cache in (("y1", "x3"), ("y2", "x4")):
        binding.bind_ortvalue_output(result, values[cache])
    session.run_with_iobinding(binding)
    return [value.numpy().copy() for value in binding.get_outputs()]


@pytest.mark.parametrize("is_open", [False, True], ids=["known sizes", "open sizes"])
@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        pytest.param(_inputs(40, (40, 40), _LAYOUTS), {}, id="a prompt"),
        pytest.param(_inputs(1, (41, 41), _LAYOUTS), {"scale": 0.2}, id="a token"),
        pytest.param(_inputs(5, (33,), _ONE_LAYOUT, packed=True), {}, id="tokens in one tensor"),
        pytest.param(
            _inputs(2, (50, 50), _LAYOUTS, np.cos(_ANGLES), np.sin(_ANGLES)),
            {"do_rotary": 1, "rotary_interleaved": 1},
            id="turned tokens",
        ),
    ],
)
def test_sparse_attention_is_native_and_matches_onnx_runtime(
    inputs: Any, attributes: dict[str, Any], is_open: bool
) -> None:
    arguments = (MICROSOFT, "SparseAttention", inputs, {**_ATTRIBUTES, **attributes}, 3)
    model, feed = one_node_model(*arguments, _OPEN if is_open else None)
    program = onert.compile(onert.load(model), num_threads=1)
    assert is_open or {step.backend for step in program.main.steps} == {"llvm"}
    for mine, theirs in zip(onert.Execution(program).run(feed).values(), _peer(model, feed), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_each_sequence_has_its_own_number_of_tokens_in_a_cache() -> None:
    """ONNX Runtime reads beyond the tokens of the shorter sequence, so each is run alone."""
    both = _inputs(1, (41, 20), _LAYOUTS)
    model, feed = one_node_model(MICROSOFT, "SparseAttention", both, _ATTRIBUTES, 3)
    found = onert.InferenceSession(model).run(None, feed)
    for at, total in enumerate((41, 20)):
        alone = (*(x[at : at + 1] for x in both[:5]), *_LAYOUTS, np.int32([total]), np.int32([total]))
        model, feed = one_node_model(MICROSOFT, "SparseAttention", alone, _ATTRIBUTES, 3)
        for mine, theirs in zip(found, _peer(model, feed), strict=True):
            np.testing.assert_allclose(mine[at : at + 1], theirs, rtol=1e-4, atol=1e-5)


def test_a_token_without_room_in_the_cache_is_an_error() -> None:
    model, feed = one_node_model(MICROSOFT, "SparseAttention", _inputs(1, (_ROOM + 1,), _LAYOUTS), _ATTRIBUTES, 3)
    with pytest.raises(onert.OnertError, match=r"index 64 is outside of dimension .* of 64"):
        onert.InferenceSession(model).run(None, feed)


@pytest.mark.parametrize(
    ("layouts", "sentence"),
    [
        ((_LAYOUTS[0].array, _LAYOUTS[1]), "the rows of blocks (input 5) is not constant"),
        ((_LAYOUTS[0], _ONE_LAYOUT[1]), "expected rows and columns of each layout"),
        ((Constant(np.int32([[0, 1]] * 3)), Constant(np.int32([[0]] * 3))), "expected a divisor of 4"),
        ((Constant(np.int32([[0, 2, 1]])), Constant(np.int32([[0, 1]]))), "the blocks of layout 0 are not rows"),
        ((Constant(np.int32([[0, 1, 2]])), Constant(np.int32([[0, 2]]))), "the blocks of layout 0 are not rows"),
        ((Constant(np.int32([[0, 1, 3]])), Constant(np.int32([[0, 1]]))), "the blocks of layout 0 are not rows"),
    ],
)
def test_blocks_that_are_not_rows_of_columns_are_refused(layouts: Any, sentence: str) -> None:
    model, _ = one_node_model(MICROSOFT, "SparseAttention", _inputs(1, (41,), layouts), _ATTRIBUTES, 3)
    with pytest.raises(onert.ModelError) as error:
        onert.load(model)
    assert sentence in str(error.value)
