"""Cases of a long short-term memory of one cell, its steps written out."""

from __future__ import annotations

import math

import numpy as np

from onert.ir import Array
from onert.ir.ops.recurrent import SequenceLSTM

from .case import Case

_X = (0.5, -1.0, 2.0)
_INPUT, _FORGET, _CELL, _OUTPUT = (0.3, -0.2, 0.1), (-0.4, 0.5, 1.0), (0.7, 0.6, 0.0), (0.2, -0.1, -0.3)
"""Weight of the input, weight of the last output and bias of each gate."""


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _steps(coupled: bool) -> tuple[list[float], float, float]:
    """The outputs, and the last output and cell state."""
    h = c = 0.0
    outputs = []
    for x in _X:

        def gate(w: tuple[float, float, float], x: float = x, h: float = h) -> float:
            return w[0] * x + w[1] * h + w[2]

        forget = _logistic(gate(_FORGET))
        entry = 1 - forget if coupled else _logistic(gate(_INPUT))
        c = forget * c + entry * math.tanh(gate(_CELL))
        h = _logistic(gate(_OUTPUT)) * math.tanh(c)
        outputs.append(h)
    return outputs, h, c


def _case(name: str, *, coupled: bool = False, time_major: bool = False) -> Case:
    gates = (_INPUT, _FORGET, _CELL, _OUTPUT)
    first = 1 if coupled else 0

    def column(at: int, *shape: int) -> list[Array | None]:
        some: list[Array | None] = [np.full(shape, gate[at], np.float32) for gate in gates[first:]]
        return [None] * first + some

    layout = (3, 1, 1) if time_major else (1, 3, 1)
    outputs, h, c = _steps(coupled)
    zero = np.zeros((1, 1), np.float32)
    return Case(
        name,
        SequenceLSTM(time_major=time_major),
        (
            np.array(_X, np.float32).reshape(layout),
            *column(0, 1, 1),
            *column(1, 1, 1),
            None,
            None,
            None,
            *column(2, 1),
            None,
            None,
            zero,
            zero,
        ),
        (
            np.array(outputs, np.float32).reshape(layout),
            np.full((1, 1), h, np.float32),
            np.full((1, 1), c, np.float32),
        ),
    )


CASES = [
    _case("batch first"),
    _case("time first", time_major=True),
    _case("coupled input and forget gates", coupled=True),
]
