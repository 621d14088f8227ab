"""Circle's GRU, read from a file, equals the results published by ONE's interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from model_writer import CIRCLE, Model

import onert
from onert.ir import DType

_X = np.float32([[[0.98045033, 0.39546537]], [[0.5209594, 0.72873044]]])
_INPUT_WEIGHTS = np.float32(
    [
        [0.8073279857635498, -0.5218740105628967],
        [0.1166749969124794, 0.33110499382019043],
        [0.2770330011844635, 0.23767800629138947],
        [0.1293960064649582, 0.17175200581550598],
        [-0.15584999322891235, 0.8137810230255127],
        [-0.2667199969291687, -0.23028500378131866],
    ]
)
_STATE_WEIGHTS = np.float32(
    [
        [-0.1928129941225052, -0.4582270085811615],
        [-0.17884500324726105, -0.27543601393699646],
        [0.704787015914917, 0.1874309927225113],
        [-0.28071099519729614, -0.40605801343917847],
        [-0.4156219959259033, 0.6752780079841614],
        [0.4272859990596771, -0.24114100635051727],
    ]
)
_STATE = np.float32([[[0.22777566, -0.1976251]]])
"""Published in compiler/luci-interpreter/src/kernels/GRU.test.cpp of Samsung's ONE."""


@pytest.mark.parametrize("sequences", [False, True])
def test_a_gru_from_a_circle_file_gives_the_published_state(sequences: bool) -> None:
    model = Model(CIRCLE)
    graph = model.graph()
    x = graph.input(DType.FLOAT32, _X.shape)
    operands = [x, graph.constant(_INPUT_WEIGHTS), -1, graph.constant(_STATE_WEIGHTS), -1]
    state = graph.constant(np.zeros((1, 2), np.float32))
    y = graph.tensor(DType.FLOAT32, (1, 1, 2))
    graph.operator("GRU", [*operands, state], [y], ("GRUOptions", {"returnSequences": sequences}))
    graph.outputs(y)
    execution = onert.Execution(onert.compile(onert.load(model.done()), backends=("reference",)))
    for _ in range(2):  # every run starts from the state in the file
        (found,) = execution.run([_X]).values()
        assert found.shape == (2 if sequences else 1, 1, 2)
        np.testing.assert_allclose(found[-1:], _STATE, rtol=0, atol=1e-7)
