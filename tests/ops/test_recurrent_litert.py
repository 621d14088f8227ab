"""Recurrent layers, loaded and run several times, equal LiteRT's kernels; integers bit for bit."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from typing import Any

import litert_peer as litert
import lstm_trials as lstms
import numpy as np
import pytest
import recurrent_trials as trials
from recurrent_trials import Trial

import onert
from onert.ir import Array


def _ours(model: bytes, rounds: Iterable[tuple[Array, ...]], backends: tuple[str, ...]) -> list[list[Array]]:
    execution = onert.Execution(onert.compile(onert.load(model), backends=backends))
    return [list(execution.run(inputs).values()) for inputs in rounds]


def _check(trial: Trial, backends: tuple[str, ...] = ("reference",)) -> None:
    model = litert.one_operator(
        trial.code, trial.options, trial.types, trial.constants, trial.variables, trial.intermediates
    )
    theirs = litert.run_again(model, trial.rounds)
    for at, (mine, other) in enumerate(zip(_ours(model, trial.rounds, backends), theirs, strict=True)):
        for a, b in zip(mine, other, strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            if a.dtype.kind == "f":
                largest = max(float(np.abs(b).max(initial=0)), 1.0)
                np.testing.assert_allclose(a, b, rtol=0, atol=trial.tolerance * largest, err_msg=f"run {at}")
            else:
                np.testing.assert_array_equal(a, b, err_msg=f"run {at}")


DEFAULT = (0, 2)
"""Which of each five trials run by default. Trials are products of two to four choices, so all pairs of them occur."""


def _named(families: Iterable[Iterable[Trial]], default: Collection[int] = range(5)) -> list[Any]:
    """The trials as parameters. Of each five, those at other positions than the `default` ones are long."""
    return [
        pytest.param(t, id=f"{t.code} {t.name}", marks=() if at % 5 in default else pytest.mark.long)
        for at, t in enumerate(chain.from_iterable(families))
    ]


_TRIALS = _named(
    (
        trials.svdf(),
        trials.rnn(),
        trials.bidirectional_rnn(),
        trials.long_rnn(),
        lstms.lstm(),
        lstms.diagonal_lstm(),
        lstms.basic_lstm(),
        lstms.long_hybrid(),
        lstms.bidirectional_lstm(),
        lstms.integer_lstm(),
        lstms.narrow_lstm(),
    ),
    DEFAULT,
)


@pytest.mark.parametrize("trial", _TRIALS)
def test_recurrent_layers_equal_litert(trial: Trial) -> None:
    """Integer layers, and long sequences with integer weights, are bitwise equal."""
    _check(trial)


_FAMILIES = (trials.svdf, trials.rnn, trials.bidirectional_rnn, lstms.lstm, lstms.bidirectional_lstm)
_SOME = [list(family())[::23] for family in (*_FAMILIES, lstms.integer_lstm, lstms.basic_lstm)]


@pytest.mark.parametrize("trial", _named((lstms.long_hybrid(), trials.long_rnn(), *_SOME)))
def test_recurrent_layers_equal_litert_on_all_backends(trial: Trial) -> None:
    """Runs natively where possible; integer and dynamic-range layers are bitwise equal."""
    _check(trial, ())
