"""Language model decoders as today's converters write them for TFLite, with random weights, and the same in NumPy.

Two signatures share their caches, which are inputs and outputs by the same names: `prefill` takes tokens and returns
only the caches, `decode` takes one token and also returns the next one's scores. Attention has fewer key heads than
query heads, rotary positions, RMS norms in composites, and gated SiLU layers in between. Weights are integers with a
scale for each row, or one for each run of 32 (`blocks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import define, field, frozen
from model_writer import Graph, Model

from onert.ir import Array, DType
from onert.ir.value import Value

RUN = 32
"""Weights that share a scale in blocks."""
EPSILON = 1e-5
BASE = 10000.0
F32, I32 = DType.FLOAT32, DType.INT32


@frozen
class Sizes(Value):
    """A decoder's sizes; `positions` is the capacity of its caches."""

    layers: int = 12
    heads: int = 12
    key_heads: int = 4
    size: int = 64
    hidden: int = 3072
    vocabulary: int = 32768
    positions: int = 1024

    @property
    def model(self) -> int:
        """The elements of a token's row between layers."""
        return self.heads * self.size

    @property
    def matrices(self) -> Mapping[str, tuple[int, int]]:
        """The matrices of a layer, `[outputs, features]`."""
        keys = self.key_heads * self.size
        return {
            "query": (self.model, self.model),
            "key": (keys, self.model),
            "value": (keys, self.model),
            "output": (self.model, self.model),
            "gate": (self.hidden, self.model),
            "up": (self.hidden, self.model),
            "down": (self.model, self.hidden),
        }


@frozen(eq=False)
class Matrix:
    """Integers `[n, k]` of `bits` bits, and scales `[n, runs]` that are exact in float16."""

    integers: Array
    scales: Array
    bits: int

    @property
    def floats(self) -> Array:
        """The matrix in float32."""
        n, k = self.integers.shape
        return (self.integers.reshape(n, self.scales.shape[1], -1) * self.scales[:, :, None]).reshape(n, k)


@frozen(eq=False)
class Weights:
    """A decoder's parameters: matrices by layer and name, norm factors, token embeddings, output matrix."""

    sizes: Sizes
    layers: Sequence[Mapping[str, Matrix]]
    norms: Array
    tokens: Matrix
    last: Matrix


def weights(sizes: Sizes, bits: int, blocks: bool, seed: int = 0) -> Weights:
    """Random weights that keep activations near one."""
    rng = np.random.default_rng(seed)

    def matrix(n: int, k: int, bits: int, blocks: bool, deviation: float) -> Matrix:
        most = (1 << bits - 1) - 1
        integers = rng.integers(-most, most, (n, k), np.int8, endpoint=True)
        scales = rng.uniform(0.8, 1.2, (n, k // RUN if blocks else 1)) * deviation * 3**0.5 / (most + 1)
        return Matrix(integers, scales.astype(np.float16).astype(np.float32), bits)

    layers = [
        {name: matrix(n, k, bits, blocks, k**-0.5) for name, (n, k) in sizes.matrices.items()}
        for _ in range(sizes.layers)
    ]
    norms = rng.uniform(0.7, 1.3, (2 * sizes.layers + 1, sizes.model)).astype(np.float32)
    tokens = matrix(sizes.vocabulary, sizes.model, 8, False, 1.0)
    return Weights(sizes, layers, norms, tokens, matrix(sizes.vocabulary, sizes.model, bits, blocks, sizes.model**-0.5))


# ---- in NumPy


@define
class Oracle:
    """The decoder in float32, with caches `[layer, heads, positions, n]`; calls return the scores of all tokens."""

    given: Weights
    keys: Array = field(init=False)
    values: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        s = self.given.sizes
        self.keys, self.values = (np.zeros((s.layers, s.key_heads, s.positions, s.size), np.float32) for _ in range(2))

    def __call__(self, tokens: Sequence[int], first: int) -> Array:
        s, w = self.given.sizes, self.given
        places = np.arange(first, first + len(tokens))
        x = w.tokens.floats[list(tokens)]
        for number, layer in enumerate(w.layers):
            y = _normalized(x, w.norms[2 * number])
            query, key, value = (
                (y @ layer[name].floats.T).reshape(len(tokens), -1, s.size).transpose(1, 0, 2)
                for name in ("query", "key", "value")
            )
            query, key = (_rotated(t, places) for t in (query, key))
            self.keys[number][:, places], self.values[number][:, places] = key, value
            query = query.reshape(s.key_heads, -1, len(tokens), s.size)
            scores = query @ self.keys[number][:, None].swapaxes(-1, -2) * np.float32(s.size**-0.5)
            scores = np.where(np.arange(s.positions) <= places[:, None], scores, np.float32(-np.inf))
            parts = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = (parts / parts.sum(-1, keepdims=True)) @ self.values[number][:, None]
            mixed = mixed.reshape(s.heads, len(tokens), s.size).transpose(1, 0, 2).reshape(len(tokens), -1)
            x = x + mixed @ layer["output"].floats.T
            y = _normalized(x, w.norms[2 * number + 1])
            gate = y @ layer["gate"].floats.T
            x = x + (gate / (1 + np.exp(-gate)) * (y @ layer["up"].floats.T)) @ layer["down"].floats.T
        out: Array = _normalized(x, w.norms[-1]) @ w.last.floats.T
        return out


def _normalized(x: Array, factors: Array) -> Array:
    out: Array = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(EPSILON)) * factors
    return out


def _angles(n: int) -> Array:
    return (BASE ** -(np.arange(0, n, 2) / n)).astype(np.float32)


def _rotated(x: Array, places: Array) -> Array:
    """Rotate elements i and i + n / 2 as a pair."""
    angles = places[:, None] * _angles(x.shape[-1])
    sin, cos = np.sin(angles).astype(np.float32), np.cos(angles).astype(np.float32)
    one, two = np.split(x, 2, -1)
    return np.concatenate([one * cos - two * sin, two * cos + one * sin], -1)


# ---- as a file


def decoder(given: Weights, prefill: int = 128) -> bytes:
    """A model with the signatures `prefill` for `prefill` tokens, and `decode` for one.

    Inputs are `tokens` [1, count] and `positions` [count], int32, and the caches `keys_0`, `values_0`, ... of [1,
    heads, positions, n]; outputs are the caches and, for `decode`, `scores` [1, 1, vocabulary].
    """
    writer = _Writer(given, Model())
    for name, count in (("decode", 1), ("prefill", prefill)):
        writer.entry(name, count)
    return writer.model.done()


@define
class _Writer:
    """What the entries share: the buffers of matrices, and the bodies of composites."""

    given: Weights
    model: Model
    _buffers: dict[int, int] = field(factory=dict)
    _bodies: dict[int, int] = field(factory=dict)

    def entry(self, name: str, count: int) -> None:
        """A subgraph with its signature."""
        s, w, g = self.given.sizes, self.given, _Ops(self, self.model.graph(name), count)
        tokens, places = g.graph.input(I32, (1, count)), g.graph.input(I32, (count,))
        shape = (1, s.key_heads, s.positions, s.size)
        caches = [g.graph.input(F32, shape) for _ in range(2 * s.layers)]
        x = g.made("EMBEDDING_LOOKUP", [g.reshaped(tokens, (count,), I32), g.matrix(w.tokens)], (count, s.model))
        seen, turns, start = g.seen(places), g.turns(places), g.start(places)
        after = []
        for number, layer in enumerate(w.layers):
            y = g.normalized(x, w.norms[2 * number])
            query, key, value = (g.heads_of(g.times(y, layer[n])) for n in ("query", "key", "value"))
            query, key = (g.rotated(t, turns) for t in (query, key))
            after += [
                g.made("DYNAMIC_UPDATE_SLICE", [cache, new, start], shape)
                for cache, new in zip(caches[2 * number : 2 * number + 2], (key, value), strict=True)
            ]
            x = g.binary("ADD", x, g.times(g.attended(query, *after[-2:], seen), layer["output"]))
            y = g.normalized(x, w.norms[2 * number + 1])
            gate = g.times(y, layer["gate"])
            gate = g.binary("MUL", gate, g.made("LOGISTIC", [gate], g.shape(gate)))
            x = g.binary("ADD", x, g.times(g.binary("MUL", gate, g.times(y, layer["up"])), layer["down"]))
        names = [f"{kind}_{number}" for number in range(s.layers) for kind in ("keys", "values")]
        if name == "decode":
            scores = g.times(g.normalized(x, w.norms[-1]), w.last)
            after, outputs = [*after, g.reshaped(scores, (1, 1, s.vocabulary))], [*names, "scores"]
        else:
            outputs = names
        g.graph.outputs(*after)
        self.model.signature(name, g.graph, (["tokens", "positions", *names], outputs))

    def buffer(self, matrix: Matrix, dtype: DType) -> int:
        """The buffer of a matrix, which both entries read."""
        found = self._buffers.get(id(matrix))
        if found is None:
            found = self._buffers[id(matrix)] = self.model.buffer(matrix.integers, dtype)
        return found

    def body(self, count: int) -> int:
        """The subgraph of a norm of `count` rows."""
        if count not in self._bodies:
            self._bodies[count] = len(self.model.table.subgraphs)
            g = _Ops(self, self.model.graph(f"norm_{count}"), count)
            x = g.graph.input(F32, (count, self.given.sizes.model))
            factors = g.graph.input(F32, (self.given.sizes.model,))
            axes = g.graph.constant(np.int32([-1]))
            mean = g.made("MEAN", [g.binary("MUL", x, x), axes], (count, 1), ("ReducerOptions", {"keepDims": True}))
            root = g.made("RSQRT", [g.binary("ADD", mean, g.graph.constant(np.float32(EPSILON)))], (count, 1))
            g.graph.outputs(g.binary("MUL", g.binary("MUL", x, root), factors))
        return self._bodies[count]


@define
class _Ops:
    """Operators of one subgraph that works on `count` tokens."""

    writer: _Writer
    graph: Graph
    count: int

    def shape(self, tensor: int) -> tuple[int, ...]:
        return tuple(self.graph.table.tensors[tensor].shape)

    def made(
        self,
        code: str,
        inputs: Sequence[int],
        shape: Sequence[int],
        options: tuple[str, Mapping[str, object]] | None = None,
        dtype: DType = F32,
    ) -> int:
        """The result of an operator."""
        found = self.graph.tensor(dtype, shape)
        self.graph.operator(code, inputs, [found], options)
        return found

    def binary(self, code: str, x: int, y: int) -> int:
        shape = np.broadcast_shapes(self.shape(x), self.shape(y))
        return self.made(code, [x, y], shape, (f"{code.title()}Options", {}))

    def ints(self, *numbers: int) -> int:
        return self.graph.constant(np.int32(numbers))

    def reshaped(self, x: int, shape: Sequence[int], dtype: DType = F32) -> int:
        return self.made("RESHAPE", [x, self.ints(*shape)], shape, ("ReshapeOptions", {"newShape": shape}), dtype)

    def transposed(self, x: int, *axes: int) -> int:
        shape = [self.shape(x)[axis] for axis in axes]
        return self.made("TRANSPOSE", [x, self.ints(*axes)], shape, ("TransposeOptions", {}))

    def matrix(self, matrix: Matrix) -> int:
        """A constant matrix with its scales."""
        schema, dtype = self.writer.model.schema, {8: DType.INT8, 4: DType.INT4, 2: DType.INT2}[matrix.bits]
        found = self.graph.tensor(dtype, matrix.integers.shape)
        tensor = self.graph.table.tensors[found]
        tensor.buffer = self.writer.buffer(matrix, dtype)
        tensor.quantization = schema.QuantizationParametersT()
        if matrix.scales.shape[1] == 1:
            tensor.quantization.scale = matrix.scales.reshape(-1)
            tensor.quantization.zeroPoint = np.zeros(len(matrix.scales), np.int64)
            return found
        blocks = schema.BlockwiseQuantizationT()
        blocks.blockSize = RUN
        blocks.scales = self.graph.constant(matrix.scales.astype(np.float16))
        tensor.quantization.detailsType = schema.QuantizationDetails.BlockwiseQuantization
        tensor.quantization.details = blocks
        return found

    def times(self, x: int, matrix: Matrix) -> int:
        """Rows times a matrix."""
        return self.made(
            "FULLY_CONNECTED",
            [x, self.matrix(matrix), -1],
            (self.count, len(matrix.integers)),
            ("FullyConnectedOptions", {"keepNumDims": True}),
        )

    def normalized(self, x: int, factors: Array) -> int:
        """A root-mean-square norm, as a composite."""
        options = {"name": "odml.rms_norm", "decompositionSubgraphIndex": self.writer.body(self.count), "version": 1}
        inputs = [x, self.graph.constant(factors)]
        return self.made("STABLEHLO_COMPOSITE", inputs, self.shape(x), ("StableHLOCompositeOptions", options))

    def heads_of(self, x: int) -> int:
        """Rows as heads: [1, heads, tokens, n]."""
        size = self.writer.given.sizes.size
        return self.transposed(self.reshaped(x, (1, self.count, self.shape(x)[1] // size, size)), 0, 2, 1, 3)

    def turns(self, places: int) -> tuple[int, int]:
        """Cosines and sines of the positions' angles: [tokens, n / 2]."""
        angles = self.graph.constant(_angles(self.writer.given.sizes.size)[None])
        floats = self.made("CAST", [places], (self.count,), ("CastOptions", {}))
        found = self.binary("MUL", self.reshaped(floats, (self.count, 1)), angles)
        cos, sin = (self.made(code, [found], self.shape(found)) for code in ("COS", "SIN"))
        return cos, sin

    def rotated(self, x: int, turns: tuple[int, int]) -> int:
        """Each head's two halves rotated as pairs."""
        cos, sin = turns
        half = (*self.shape(x)[:-1], self.shape(x)[-1] // 2)
        one, two = self.graph.tensor(F32, half), self.graph.tensor(F32, half)
        axis = self.graph.constant(np.int32(3))
        self.graph.operator("SPLIT", [axis, x], [one, two], ("SplitOptions", {"numSplits": 2}))
        left = self.binary("SUB", self.binary("MUL", one, cos), self.binary("MUL", two, sin))
        right = self.binary("ADD", self.binary("MUL", two, cos), self.binary("MUL", one, sin))
        return self.made("CONCATENATION", [left, right], self.shape(x), ("ConcatenationOptions", {"axis": 3}))

    def start(self, places: int) -> int:
        """The start indices of new rows in a cache."""
        zero, one = self.ints(0), self.ints(1)
        first = places if self.count == 1 else self.made("SLICE", [places, zero, one], (1,), ("SliceOptions", {}), I32)
        return self.made("CONCATENATION", [zero, zero, first, zero], (4,), ("ConcatenationOptions", {}), I32)

    def seen(self, places: int) -> int:
        """The attention mask added to scores: 0 where a token may look, else -inf; [1, 1, rows, positions]."""
        s = self.writer.given.sizes
        numbers = self.graph.constant(np.arange(s.positions, dtype=np.int32)[None])
        below = self.reshaped(places, (self.count, 1), I32)
        shape = (self.count, s.positions)
        may = self.made("LESS_EQUAL", [numbers, below], shape, ("LessEqualOptions", {}), DType.BOOL)
        choices = [self.graph.constant(np.float32(x)) for x in (0, -np.inf)]
        found = self.made("SELECT_V2", [may, *choices], shape, ("SelectV2Options", {}))
        repeated = self.made(
            "CONCATENATION",
            [found] * (s.heads // s.key_heads),
            (s.heads // s.key_heads * self.count, s.positions),
            ("ConcatenationOptions", {}),
        )
        return self.reshaped(repeated, (1, 1, *self.shape(repeated)))

    def attended(self, query: int, keys: int, values: int, seen: int) -> int:
        """Attention rows of all heads: softmax of products with keys, times values."""
        s = self.writer.given.sizes
        rows = (1, s.key_heads, s.heads // s.key_heads * self.count)
        scale = self.graph.constant(np.float32(s.size**-0.5))
        query = self.reshaped(self.binary("MUL", query, scale), (*rows, s.size))
        options = ("BatchMatMulOptions", {"adjY": True})
        scores = self.made("BATCH_MATMUL", [query, keys], (*rows, s.positions), options)
        scores = self.binary("ADD", scores, seen)
        parts = self.made("SOFTMAX", [scores], self.shape(scores), ("SoftmaxOptions", {"beta": 1.0}))
        mixed = self.made("BATCH_MATMUL", [parts, values], (*rows, s.size), ("BatchMatMulOptions", {}))
        by_head = self.reshaped(mixed, (1, s.heads, self.count, s.size))
        return self.reshaped(self.transposed(by_head, 0, 2, 1, 3), (self.count, s.model))
