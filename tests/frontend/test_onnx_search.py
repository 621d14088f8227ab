"""Searches of com.microsoft, whose models are graphs among their attributes, give ONNX Runtime's sequences."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from frontend.onnx_search_models import WORDS, decoder, encoder_and_decoder, search
from onnx_peer import precise_session

import onert

_GREEDY = ["input_ids", "most", "least", "repetition", "words", "first_words", "mask"]
_BEAMS = ["input_ids", "most", "least", "beams", "count", "length_penalty", *_GREEDY[3:], "prompts", "", "", "", "heat"]
_RESULTS = ["sequences", "sequences_scores", "scores"]
_TOKENS = np.int32([[3, 4, 5], [19, 6, 7]])
_WORDS = np.ones(WORDS, np.int32)
_WORDS[[1, 2, 9, 13]] = 0
_FIRST = (np.random.default_rng(0).random((2, WORDS)) > 0.5).astype(np.int32)


def _numbers(**given: float) -> dict[str, Any]:
    return {name: np.array([x], np.int32 if isinstance(x, int) else np.float32) for name, x in given.items()}


_PLAIN = {"input_ids": _TOKENS, **_numbers(most=14, least=1, repetition=1.0)}
_SEVERAL = {**_PLAIN, **_numbers(beams=3, count=2, length_penalty=1.0)}
_ENCODED = {**_SEVERAL, "input_ids": np.int32([[3, 4, 5, 9], [0, 6, 7, 0]])}
_SOUNDS = {**_SEVERAL, "input_ids": np.random.default_rng(1).normal(size=(2, 6, 5)).astype(np.float32)}
_ENDS = {"eos_token_id": 11, "pad_token_id": 19}
_T5 = {**_ENDS, "model_type": 1, "decoder_start_token_id": 2}
_WHISPER = {**_T5, "model_type": 2}

CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "another end": ({}, {"eos_token_id": 7}),
    "a least length": (_numbers(least=12), {}),
    "a penalty for repetitions": (_numbers(repetition=1.7), {}),
    "no two tokens twice": (_numbers(most=24), {"no_repeat_ngram_size": 2}),
    "no token twice": ({}, {"no_repeat_ngram_size": 1}),
    "some words": ({"words": _WORDS}, {}),
    "some first words": ({"first_words": _FIRST}, {}),
    "a mask": ({"mask": np.int32([[0, 1, 1], [1, 1, 1]])}, {}),
}
MORE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **CHANGES,
    "one beam": (_numbers(beams=1, count=1), {}),
    "many beams": (_numbers(beams=7, count=7), {}),
    "the first that end": ({}, {"early_stopping": 1, "eos_token_id": 7}),
    "short ones": (_numbers(length_penalty=-1.0), {}),
    "long ones": (_numbers(length_penalty=2.0), {}),
    "any length": (_numbers(length_penalty=0.0), {}),
}
ENCODED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "an encoder that makes the first step": ({}, {}, {}),
    "a decoder without the encoder's results": ({}, {}, {"hidden": False}),
    "two layers": ({}, {"early_stopping": 1}, {"layers": 2}),
    "an encoder's mask": ({"mask": np.int32([[1, 1, 0, 1], [0, 1, 1, 1]])}, {}, {}),
    "a decoder that makes all steps": ({}, {}, {"first": False, "hidden": False}),
    "a penalty": (_numbers(repetition=1.4), {"no_repeat_ngram_size": 2}, {"layers": 2}),
}


def _compare(model: bytes, feed: dict[str, Any], pad: int = 19) -> None:
    mine, theirs = onert.InferenceSession(model).run(None, feed), precise_session(model).run(None, feed)
    for a, b in zip(mine, theirs, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
    if len(mine) == 1:  # ONNX Runtime does not fill what is behind the end of the last sequence
        used = 1 + int(np.flatnonzero((mine[0] != pad).any(0)).max())
        np.testing.assert_array_equal(mine[0][:, :used], theirs[0][:, :used])
        return
    np.testing.assert_array_equal(mine[0], theirs[0])
    np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-4, atol=1e-5)
    steps = int(mine[2].any((1, 2, 3)).sum())
    np.testing.assert_allclose(mine[2][:steps], theirs[2][:steps], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("change", CHANGES)
def test_the_best_token_is_added_in_each_step(change: str) -> None:
    inputs, attributes = CHANGES[change]
    feed = {**_PLAIN, **inputs}
    _compare(
        search("GreedySearch", feed, _GREEDY, _RESULTS[:1], decoder=decoder(3, 4), **{**_ENDS, **attributes}), feed
    )


@pytest.mark.parametrize("change", MORE)
def test_the_best_sequences_are_continued(change: str) -> None:
    inputs, attributes = MORE[change]
    feed = {**_SEVERAL, **inputs}
    _compare(search("BeamSearch", feed, _BEAMS, _RESULTS, decoder=decoder(4, 3), **{**_ENDS, **attributes}), feed)


@pytest.mark.parametrize("batch", [1, 3, 4])
def test_batches_of_any_number_end_where_those_of_onnx_runtime_end(batch: int) -> None:
    feed = {**_SEVERAL, "input_ids": np.random.default_rng(batch).integers(1, 19, (batch, 2)).astype(np.int32)}
    model = partial(search, "BeamSearch", feed, _BEAMS, _RESULTS, decoder=decoder(5, 2))
    for end in (3, 8):
        _compare(model(**{**_ENDS, "eos_token_id": end}), feed)


@pytest.mark.parametrize("change", ENCODED)
def test_sequences_of_an_encoders_decoder_are_found(change: str) -> None:
    inputs, attributes, models = ENCODED[change]
    feed = {**_ENCODED, **inputs}
    encoder, own = encoder_and_decoder(6, 3, **models)
    _compare(search("BeamSearch", feed, _BEAMS, _RESULTS, encoder=encoder, decoder=own, **{**_T5, **attributes}), feed)


@pytest.mark.parametrize(
    "attributes",
    [
        {"top_p": 0.9},
        {"top_p": 0.5, "temperature": 0.7, "min_tokens_to_keep": 2},
        {"top_p": 0.99, "temperature": 1.5, "filter_value": -50.0},
        {"top_p": 0.8, "custom": 1},
    ],
)
def test_tokens_are_drawn_with_the_numbers_of_onnx_runtime(attributes: dict[str, Any]) -> None:
    for seed in (0, 77, 2**31 - 1):
        feed = {**_PLAIN, **_numbers(seed=seed)}
        named = {"filter_value": -1e20, "temperature": 1.0, "min_tokens_to_keep": 1, **attributes}
        order = [*_GREEDY, "present", "seed"]
        _compare(search("Sampling", feed, order, _RESULTS[:1], decoder=decoder(9, 1), **_ENDS, **named), feed)


@pytest.mark.parametrize("operator", ["GreedySearch", "BeamSearch"])
def test_the_first_step_may_have_a_decoder_of_its_own(operator: str) -> None:
    feed, order, results = (_PLAIN, _GREEDY, 1) if operator == "GreedySearch" else (_SEVERAL, _BEAMS, 3)
    models = {"decoder": decoder(3, 4), "init_decoder": decoder(4, 4)}
    _compare(search(operator, feed, order, _RESULTS[:results], **models, **_ENDS), feed)


_TIMES = {
    "start_of_lm_token_id": 13,
    "no_timestamps_token_id": 14,
    "beginning_timestamp_token_id": 15,
    "translate_token_id": 12,
    "transcribe_token_id": 4,
    "eos_token_id": 11,
    "decoder_start_token_id": 3,
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("timed", [0, 1])
def test_sequences_of_sounds_have_times(seed: int, timed: int) -> None:
    prompts = {"prompts": np.int32([[3, 4, 15], [3, 12, 16]])} if seed % 2 else {}
    feed = {**_SOUNDS, **prompts, **_numbers(timed=timed)}
    order = [name if at != 11 else "timed" for at, name in enumerate(_BEAMS)]
    encoder, own = encoder_and_decoder(seed, 2, sounds=True)
    how = {**_WHISPER, **_TIMES, "pad_token_id": 0}
    _compare(search("WhisperBeamSearch", feed, order, _RESULTS, encoder=encoder, decoder=own, **how), feed)


def test_a_temperature_divides_scores() -> None:
    feed = {**_SOUNDS, **_numbers(heat=2.5)}
    encoder, own = encoder_and_decoder(8, 3, sounds=True)
    _compare(search("WhisperBeamSearch", feed, _BEAMS, _RESULTS, encoder=encoder, decoder=own, **_WHISPER), feed)


@pytest.mark.parametrize("operator", ["BeamSearch", "WhisperBeamSearch"])
@pytest.mark.parametrize("prompt", [1, 3])
def test_sequences_of_sounds_begin_with_a_prompt(operator: str, prompt: int) -> None:
    feed = {**_SOUNDS, **({"prompts": np.int32([[2, 3, 4], [2, 5, 6]])} if prompt > 1 else {})}
    encoder, own = encoder_and_decoder(7, 3, sounds=True, hidden=prompt > 1)
    _compare(search(operator, feed, _BEAMS, _RESULTS, encoder=encoder, decoder=own, **_WHISPER), feed)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no beams": (_numbers(beams=0, count=0), {}, "there are 0 beams, expected 1 to 128"),
    "too many beams": (_numbers(beams=129), {}, "there are 129 beams, expected 1 to 128"),
    "more results than beams": (_numbers(count=4), {}, "4 sequences are returned, expected 1 to 3"),
    "no room": (_numbers(most=3), {}, "the length is limited to 3, expected more than the 3 given tokens"),
    "too long": (_numbers(most=5000), {}, "the length is limited to 5000, expected at most 4096"),
    "no penalty": (_numbers(repetition=0.0), {}, "the penalty for repetitions is 0.0, expected more than 0"),
    "words": ({"words": _WORDS[:9]}, {}, "the mask of words does not have 20 entries"),
    "mask": ({"mask": np.int32([[1, 1]])}, {}, "the mask does not have the shape of (2, 3)"),
    "ends": ({}, {"eos_token_id": -1}, "eos_token_id is -1 and pad_token_id 19, expected at least 0"),
    "model": ({}, {"model_type": 3}, "model_type is 3, expected 0 to 2"),
    "first decoder": (
        {},
        {"init_decoder": decoder(0, 1, 1)},
        "graph 'decoder' has inputs input_ids, position_ids, att",
    ),
    "tokens": ({"input_ids": np.int32([[1, 20]])}, {}, "index 20"),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_a_search_is_refused_with_one_sentence(rule: str) -> None:
    inputs, attributes, sentence = REFUSED[rule]
    feed = {**_SEVERAL, **inputs}
    model = search("BeamSearch", feed, _BEAMS, _RESULTS, **{"decoder": decoder(4, 3), **_ENDS, **attributes})
    with pytest.raises(onert.OnertError, match=re.escape(sentence)):
        onert.InferenceSession(model).run(None, feed)


def test_the_models_of_a_search_run_natively_for_all_lengths() -> None:
    model = search("GreedySearch", _PLAIN, _GREEDY, _RESULTS[:1], decoder=decoder(3, 4), **_ENDS)
    program = onert.compile(onert.load(model))
    assert program.rest is not None
    part = program.rest(len(program.routines), ((2, 3), (2, 3), (2, 3), (2, 2, 2, 0, 8), (2, 2, 2, 0, 8)))
    assert {step.backend for step in part.main.steps} == {"llvm"}
