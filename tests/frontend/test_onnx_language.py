"""Operators of com.microsoft, most of them for language models, are native and match ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from frontend.onnx_branch_cases import BRANCHES, UNFIT
from frontend.onnx_domain_cases import MICROSOFT, Constant, floats
from frontend.onnx_language_cases import LANGUAGE, MISFITS
from frontend.onnx_one_node import one_node_model
from frontend.onnx_stateful_cases import REFUSED, STATEFUL
from frontend.onnx_window_cases import COMPUTED_MARGINS, UNSUITED, WINDOWED
from onnx_peer import precise_session

import onert

Case = tuple[str, tuple[Any, ...], dict[str, Any], int | Sequence[int], Mapping[int, Sequence[int]]]


@pytest.mark.parametrize("case", [*STATEFUL, *LANGUAGE, *BRANCHES, *WINDOWED], ids=lambda case: case[0])
@pytest.mark.parametrize("is_open", [False, True], ids=["known sizes", "open sizes"])
def test_an_operator_of_onnx_runtime_is_native_and_has_its_results(case: Case, is_open: bool) -> None:
    *rest, open_axes = case
    model, feed = one_node_model(MICROSOFT, *rest, open_axes if is_open else None)
    program = onert.compile(onert.load(model), num_threads=1)
    if not is_open:
        assert {step.backend for step in program.main.steps} == {"llvm"}
    mine = onert.Execution(program).run(feed)
    for a, b in zip(mine.values(), precise_session(model).run(None, feed), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rule", [*REFUSED, *MISFITS, *UNFIT, *UNSUITED])
def test_an_operator_of_onnx_runtime_is_refused_with_one_sentence(rule: str) -> None:
    name, inputs, attributes, results, sentence = {**REFUSED, **MISFITS, **UNFIT, **UNSUITED}[rule]
    model, _ = one_node_model(MICROSOFT, name, inputs, attributes, results)
    with pytest.raises(onert.ModelError, match=re.escape(sentence)):
        onert.load(model)


@pytest.mark.parametrize(
    ("count", "beam", "features", "sentence"),
    [
        (8, 0, 4, "index 8 is outside of dimension 0 of 8"),
        (5, 2, 4, "a key comes from beam 2, which does not exist"),
        (5, 2, 520, "index 2 is outside of dimension 2 of 2"),
        (8, 0, 16, "index 8 is outside of dimension 0 of 8"),
        (5, 2, 16, "a key comes from beam 2, which does not exist"),
        (5, -1, 16, "a key comes from beam -1, which does not exist"),
    ],
)
def test_a_place_or_beam_that_is_not_there_is_an_error(count: int, beam: int, features: int, sentence: str) -> None:
    token, cache = floats(2, 1, 3 * features), floats(2, 3, 8, features)
    inputs = (
        token,
        token,
        token,
        None,
        None,
        cache,
        cache,
        np.int32([count]),
        None,
        np.full((1, 2, 8), beam, np.int32),
    )
    attributes = {"num_heads": 3, "past_present_share_buffer": 1}
    model, feed = one_node_model(MICROSOFT, "DecoderMaskedMultiHeadAttention", inputs, attributes, 3)
    with pytest.raises(onert.OnertError, match=sentence):
        onert.InferenceSession(model).run(None, feed)


def test_the_margins_of_a_transposed_convolution_may_be_computed() -> None:
    model, feed = one_node_model(MICROSOFT, *COMPUTED_MARGINS)
    (mine,), (theirs,) = onert.InferenceSession(model).run(None, feed), precise_session(model).run(None, feed)
    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("operator", "sentence"),
    [
        ("GatedDeltaNet", "sequence 1 does not begin where the one before it ends"),
        ("VarlenCausalConvWithState", "index 2 is outside of dimension 0 of 2"),
    ],
)
def test_a_token_of_no_sequence_is_an_error(operator: str, sentence: str) -> None:
    case = next(c for c in STATEFUL if c[0] == operator and any(np.size(x) == 3 for x in c[1] if x is not None))
    inputs = tuple(np.int32([0, 3, 9]) if np.size(x) == 3 and x is not None else x for x in case[1])
    model, feed = one_node_model(MICROSOFT, operator, inputs, *case[2:4])
    with pytest.raises(onert.OnertError, match=sentence):
        onert.InferenceSession(model).run(None, feed)


def test_a_linear_attention_without_tokens_keeps_the_batch() -> None:
    inputs = (floats(2, 0, 16), floats(2, 0, 16), floats(2, 0, 12), floats(2, 2, 8, 6))
    attributes = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
    model, feed = one_node_model(MICROSOFT, "LinearAttention", inputs, attributes, 2, dict.fromkeys(range(3), (0, 1)))
    y, state = onert.InferenceSession(model).run(None, feed)
    assert y.shape == (2, 0, 12)
    np.testing.assert_array_equal(state, inputs[3])


@pytest.mark.parametrize("length", [8, -2])
@pytest.mark.parametrize("features", [4, 16])
def test_a_token_without_room_in_its_cache_is_an_error(length: int, features: int) -> None:
    token, cache = floats(2, 1, 2 * features), floats(2, 2, 8, features)
    inputs = (token, token, token, cache, cache, np.int32([3, length]), np.int32(8))
    attributes = {"num_heads": 2, "kv_num_heads": 2}
    model, feed = one_node_model(MICROSOFT, "GroupQueryAttention", inputs, attributes, 3)
    with pytest.raises(onert.OnertError, match=f"index {length} is outside of .*dimension 2 of 8"):
        onert.InferenceSession(model).run(None, feed)


@pytest.mark.parametrize("rotated", [0, 1])
@pytest.mark.parametrize("batch", [1, 2])
def test_caches_that_are_inputs_and_outputs_are_updated_in_place(batch: int, rotated: int) -> None:
    token, cache = floats(batch, 1, 32), floats(batch, 2, 8, 16)
    tables = (np.cos(floats(9, 8)), np.sin(floats(9, 8))) if rotated else ()
    inputs = (token, token, token, cache, cache, np.full(batch, 5, np.int32), Constant(np.int32(6)), *tables)
    attributes = {"num_heads": 2, "kv_num_heads": 2, "do_rotary": rotated}
    model, feed = one_node_model(MICROSOFT, "GroupQueryAttention", inputs, attributes, 3)
    main = onert.compile(onert.load(model)).main
    assert main.pairs == ((3, main.subgraph.outputs[1]), (4, main.subgraph.outputs[2]))
    session = onert.InferenceSession(model)
    bound, values = (
        session.io_binding(),
        {name: onert.OrtValue.ortvalue_from_numpy(x.copy()) for name, x in feed.items()},
    )
    for name, value in values.items():
        bound.bind_ortvalue_input(name, value)
    bound.bind_output("y0")
    bound.bind_ortvalue_output("y1", values["x3"])
    bound.bind_ortvalue_output("y2", values["x4"])
    session.run_with_iobinding(bound)
    y, keys, _ = bound.copy_outputs_to_cpu()
    expected, all_keys, _ = precise_session(model).run(None, feed)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(keys[:, :, :6], all_keys[:, :, :6], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(values["x3"].numpy()[:, :, 6:], cache[:, :, 6:])
