"""Linear attention: a layer over tokens whose state is a matrix for each head."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.shape import Dim
from onert.ir.types import CallTypes, TensorType

from .recurrent import require_dtype

OUTSIDE = "sequence {} does not begin where the one before it ends, from the first token to the last"
"""The rule for where sequences begin."""


@frozen
class LinearAttention(Op):
    """Attention whose keys and values are summed in one matrix for each head, which decays from token to token.

    Operands, float32:

    - `q` [batch, tokens, query heads, n], `k` [batch, tokens, key heads, n], `v` [batch, tokens, heads, m]
    - `decay` [batch, tokens, heads, 1 or n], optional: factors of the state, one for each head or one for each row
    - `rate` [batch, tokens, 1 or heads], optional: how much of the difference from a value is added (delta rule);
      without it, values are added
    - `state` [batch, heads, n, m]
    - `bounds`, optional: integers [sequences + 1]. The only batch then has several sequences one behind another, each
      with a state, and these are where each begins, and the end of the last

    Results: [batch, tokens, query heads or heads, m], and the last state. For each token of a head,
    `s = decay * s; s = s + k * (rate * (v - k · s)); y = scale * q · s`. Adjacent heads share keys if there are fewer,
    and query heads share a state or a state's query, whichever are fewer.

    Source: S. Yang and others, "Gated Delta Networks" (2024); ONNX LinearAttention, opset 27.
    """

    scale: float = 1.0

    def infer(
        self,
        q: TensorType,
        k: TensorType,
        v: TensorType,
        decay: TensorType | None,
        rate: TensorType | None,
        state: TensorType,
        bounds: TensorType | None = None,
    ) -> tuple[TensorType, TensorType]:
        for x, name, rank in ((q, "q", 4), (k, "k", 4), (v, "v", 4), (decay, "decay", 4), (rate, "rate", 3)):
            if x is not None:
                require_dtype(x, DType.FLOAT32, name)
                require(x.rank == rank, f"{name} is {x}, expected {rank} dimensions")
                same = shapes.compatible(x.shape[:2], q.shape[:2])
                require(same, f"{name} is {x}, expected the tokens of {q}")
        require_dtype(state, DType.FLOAT32, "state")
        heads, n, width = v.shape[2], q.shape[3], v.shape[3]
        if bounds is not None:
            require(bounds.dtype in (DType.INT32, DType.INT64), f"bounds are {bounds}, expected i32 or i64")
            require(bounds.rank == 1 and bounds.shape[0] not in (0, 1), f"bounds are {bounds}, expected 2 or more")
            require(q.shape[0] in (1, None), f"q is {q}, expected one batch")
        count = q.shape[0] if bounds is None else _less(bounds.shape[0])
        wanted = (count, heads, n, width)
        require(
            state.rank == 4 and shapes.compatible(state.shape, wanted),
            f"state is {state}, expected {shapes.text(wanted)}",
        )
        require(shapes.compatible(k.shape[3:], (n,)), f"k is {k}, expected rows of {n}")
        require(_divides(k.shape[2], heads), f"k is {k}, expected a divisor of {heads} heads")
        shared = _divides(q.shape[2], heads) or _divides(heads, q.shape[2])
        require(shared, f"q is {q}, expected a divisor or multiple of {heads} heads")
        if decay is not None:
            fits = shapes.compatible(decay.shape[2:3], (heads,)) and (n is None or decay.shape[3] in (1, n, None))
            require(fits, f"decay is {decay}, expected {heads} heads of 1 or {n}")
        if rate is not None:
            require(heads is None or rate.shape[2] in (1, heads, None), f"rate is {rate}, expected 1 or {heads} heads")
        queries = None if q.shape[2] is None or heads is None else max(q.shape[2], heads)
        return v.result((*q.shape[:2], queries, width)), state.result(state.shape)

    def flops(self, types: CallTypes) -> int:
        tokens = (types.input(0).shape[0] or 0) * (types.input(0).shape[1] or 0)
        return 8 * tokens * (shapes.num_elements(types.input(5).shape[1:]) or 0)

    def rounds(self, types: CallTypes) -> int:
        return types.input(0).shape[1] or 0

    def evaluate(
        self,
        q: Array,
        k: Array,
        v: Array,
        decay: Array | None,
        rate: Array | None,
        state: Array,
        bounds: Array | None = None,
    ) -> tuple[Array, Array]:
        tokens, heads, width = q.shape[1], v.shape[2], v.shape[3]
        k = k.repeat(heads // k.shape[2], axis=2)
        q = q.repeat(max(heads // q.shape[2], 1), axis=2)
        group = q.shape[2] // heads
        y, last = np.empty((*q.shape[:3], width), np.float32), state.copy()
        for item in range(len(state)):
            batch, first, end = item, 0, tokens
            if bounds is not None:
                batch, first, end = 0, int(bounds[item]), int(bounds[item + 1])
                joined = (item or first == 0) and (item + 1 < len(state) or end == tokens)
                require(bool(joined) and 0 <= first <= end <= tokens, OUTSIDE.format(item))
            s = last[item]
            for at in range(first, end):
                s = s if decay is None else s * decay[batch, at][:, :, None]
                key, value = k[batch, at][:, None], v[batch, at]
                if rate is not None:
                    value = (value - (key @ s)[:, 0]) * rate[batch, at][:, None]
                s = s + key.transpose(0, 2, 1) * value[:, None]
                rows = q[batch, at].reshape(heads, group, -1)
                y[batch, at] = (rows @ s).reshape(heads * group, width) * np.float32(self.scale)
            last[item] = s
        return y, last


def _less(count: Dim) -> Dim:
    return None if count is None else count - 1


def _divides(some: Dim, count: Dim) -> bool:
    return some is None or count is None or (some > 0 and count > 0 and count % some == 0)
