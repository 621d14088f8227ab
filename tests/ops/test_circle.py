"""circle's own operators and ONE's custom ones, read from files and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flexible import flexible, node
from model_writer import CIRCLE, Model
from shared_material import SHARED, needs_shared

import onert
from onert.ir import Array, DType

F32 = DType.FLOAT32


def _run(model: bytes | Path, *inputs: Array) -> list[Array]:
    program = onert.compile(onert.load(model), backends=("reference",))
    return list(onert.Execution(program).run(inputs).values())


def _one(
    code: str, inputs: list[Array], result: tuple[DType, tuple[int, ...]], options: Any = None, custom: Any = None
) -> Array:
    """The only result of one operator whose operands are model inputs."""
    model = Model(CIRCLE)
    graph = model.graph()
    given = [graph.input(DType.from_numpy(a.dtype), a.shape) for a in inputs]
    out = graph.tensor(*result)
    graph.operator(code, given, [out], options, custom)
    graph.outputs(out)
    return _run(model.done(), *inputs)[0]


def _random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@needs_shared
@pytest.mark.parametrize("name", ["test", "while_000"])
def test_shared_models_load_compile_and_run(name: str) -> None:
    program = onert.compile(onert.load(SHARED / "models" / "samsung-one-vscode" / f"{name}.circle"))
    inputs = [np.ones(t.shape, t.dtype.numpy) for t in program.inputs]
    for result in onert.Execution(program).run(inputs).values():
        assert np.isfinite(result).all()


@pytest.mark.parametrize("mode", [0, 1], ids=["NeoX", "GPT-J"])
def test_rope_rotates_pairs(mode: int) -> None:
    x, angles = _random(1, 3, 5, 4), np.linspace(0, 2, 10, dtype=np.float32).reshape(5, 2)
    wide = np.concatenate([angles, angles], 1) if mode == 0 else np.repeat(angles, 2, 1)
    sin, cos = np.sin(wide).reshape(1, 1, 5, 4), np.cos(wide).reshape(1, 1, 5, 4)
    found = _one("ROPE", [x, sin, cos], (F32, x.shape), ("RoPEOptions", {"mode": mode}))
    pairs = (x[..., :2] + 1j * x[..., 2:]) if mode == 0 else (x[..., 0::2] + 1j * x[..., 1::2])
    turned = pairs * np.exp(1j * angles)
    mine = (found[..., :2] + 1j * found[..., 2:]) if mode == 0 else (found[..., 0::2] + 1j * found[..., 1::2])
    np.testing.assert_allclose(mine, turned, atol=1e-6)


def test_batch_matmul_applies_its_adjoint_flags() -> None:
    x, y = _random(2, 3, 4), _random(2, 5, 3, seed=1)
    options = flexible(adj_x=True, adj_y=True, T=0)
    found = _one("BatchMatMulV2", [x, y], (F32, (2, 4, 5)), custom=options)
    np.testing.assert_allclose(found, np.einsum("bka,bnk->ban", x, y), atol=1e-5)


def test_einsum_evaluates_its_equation() -> None:
    x, y = _random(2, 3, 4), _random(4, 5, seed=1)
    found = _one("Einsum", [x, y], (F32, (2, 3, 5)), custom=flexible(equation="abc,cd->abd"))
    np.testing.assert_allclose(found, x @ y, atol=1e-5)


def test_fused_batch_norm_matches_its_definition() -> None:
    x = _random(2, 3, 3, 4)
    scale, offset, mean, variance = (np.abs(_random(4, seed=i)) for i in range(1, 5))
    options = flexible(epsilon=0.01, is_training=False, data_format="NHWC")
    found = _one("FusedBatchNormV3", [x, scale, offset, mean, variance], (F32, x.shape), custom=options)
    np.testing.assert_allclose(found, (x - mean) / np.sqrt(variance + 0.01) * scale + offset, atol=1e-5)


def test_matrix_band_part_keeps_the_band() -> None:
    x = _random(2, 4, 5)
    found = _one("MatrixBandPart", [x, np.array(1), np.array(0)], (F32, x.shape), custom=flexible())
    np.testing.assert_array_equal(found, np.tril(np.triu(x, -1)))


def test_stateless_random_numbers_equal_tensorflow() -> None:
    found = _one("StatelessRandomUniform", [np.int32([5]), np.int32([1, 2])], (F32, (5,)), custom=flexible())
    # tf.random.stateless_uniform([5], [1, 2]) on a CPU
    np.testing.assert_array_equal(found, np.array(TENSORFLOW, np.float32))


TENSORFLOW = [0.8440604209899902, 0.19204533100128174, 0.9962232112884521, 0.16038739681243896, 0.27199018001556396]


def test_all_and_erf_match_their_definition() -> None:
    booleans = np.array([[True, False], [True, True]])
    found = _one("All", [booleans, np.int32([1])], (DType.BOOL, (2, 1)), custom=flexible(keep_dims=True))
    np.testing.assert_array_equal(found, [[False], [True]])
    found = _one("Erf", [np.float32([-1, 0, 0.5])], (F32, (3,)), custom=flexible())
    np.testing.assert_allclose(found, [-0.8427008, 0, 0.5204999], atol=1e-6)


def test_tensorflow_s_own_operators_match_their_definition() -> None:
    """What a converter leaves to TensorFlow (`SELECT_TF_OPS`) has the prefix Flex."""
    x = _random(2, 3, 20)
    for length, rows in ((16, x[..., :16]), (20, x), (32, np.pad(x, ((0, 0), (0, 0), (0, 12))))):
        found = _one("FlexRFFT", [x, np.int32([length])], (DType.COMPLEX64, (2, 3, length // 2 + 1)), custom=flexible())
        np.testing.assert_allclose(found, np.fft.rfft(rows), atol=1e-5)
    np.testing.assert_allclose(
        _one("FlexErf", [np.float32([-1, 0, 0.5])], (F32, (3,)), custom=flexible()),
        [-0.8427008, 0, 0.5204999],
        atol=1e-6,
    )


def test_binary_coded_weights_are_decoded() -> None:
    hidden, rng = 40, np.random.default_rng(3)
    signs = rng.integers(0, 2, (2 * 3 + 2, hidden))
    scales = rng.uniform(0.1, 1, 8).astype(np.float32)
    clusters = np.int32([[2, 3], [1, 2]])
    planes = (signs * 2 - 1) * scales[:, None]
    weights = np.concatenate([planes[:3] + planes[3:6], planes[6:]])
    padded = np.pad(signs, ((0, 0), (0, 24))).reshape(8, 2, 32).astype(np.uint64)
    words = (padded << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32).view(np.int32)
    x, bias = _random(hidden, 2), _random(5, seed=1)
    given = [x, scales, words, bias, clusters]
    found = _one("BCQ_FULLY_CONNECTED", given, (F32, (5, 2)), ("BCQFullyConnectedOptions", {"weightsHiddenSize": 40}))
    np.testing.assert_allclose(found, weights @ x + bias[:, None], atol=1e-4)
    given = [scales, words, np.int32([4, 0]), clusters]
    found = _one("BCQ_GATHER", given, (F32, (2, 40)), ("BCQGatherOptions", {"inputHiddenSize": 40, "axis": 0}))
    np.testing.assert_allclose(found, weights[[4, 0]], atol=1e-6)


def _attention(size: int) -> bytes:
    """A decoder layer whose caches are variables."""
    model = Model(CIRCLE)
    graph = model.graph()
    x = graph.input(F32, (1, 1, 8))
    weights = [graph.constant(_random(8, 8, seed=i)) for i in range(1, 5)]
    tables = [graph.input(F32, (1, 1, 4)) for _ in range(2)]
    caches = [graph.tensor(F32, (1, size, 2, 4)) for _ in range(2)]
    for cache in caches:
        graph.table.tensors[cache].isVariable = True
    position = graph.input(DType.INT64, (1,))
    out = graph.tensor(F32, (1, 1, 8))
    graph.operator("ATTENTION", [x, *weights, *tables, -1, *caches, position], [out], ("AttentionOptions", {}))
    graph.outputs(out)
    return model.done()


def _rotated(x: Array, angles: Array) -> Array:
    """Rotate each head, whose halves are the real and imaginary parts of complex numbers."""
    z = (x[..., :2] + 1j * x[..., 2:]) * np.exp(1j * angles[:2])
    return np.concatenate([z.real, z.imag], -1)


def test_attention_remembers_earlier_tokens() -> None:
    execution = onert.Execution(onert.compile(onert.load(_attention(6))))
    wq, wk, wv, wo = (_random(8, 8, seed=i) for i in range(1, 5))
    tokens = _random(4, 8, seed=9)
    keys, values = [], []
    for at, token in enumerate(tokens):
        angles = np.tile(np.float32([0.3, 0.1]) * at, 2)
        keys.append(_rotated((wk @ token).reshape(2, 4), angles))
        values.append((wv @ token).reshape(2, 4))
        query = _rotated((wq @ token).reshape(2, 4), angles)
        scores = np.einsum("hn,thn->ht", query, np.array(keys)) / 2
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        expected = wo @ np.einsum("ht,thn->hn", weights, np.array(values)).reshape(8)
        given = [token.reshape(1, 1, 8), np.cos(angles).reshape(1, 1, 4), np.sin(angles).reshape(1, 1, 4)]
        (found,) = execution.run([*given, np.int64([at])]).values()
        np.testing.assert_allclose(found[0, 0], expected, atol=1e-4)


def test_a_token_position_outside_the_cache_is_rejected() -> None:
    execution = onert.Execution(onert.compile(onert.load(_attention(2))))
    table = np.zeros((1, 1, 4), np.float32)
    with pytest.raises(onert.OnertError, match="operation 0 ATTENTION: index 2 is outside of dimension 0 of 2"):
        execution.run([np.zeros((1, 1, 8), np.float32), table, table, np.int64([2])])


def _doubling(tables: Any) -> bytes:
    """Subgraph 0 adds 1; subgraph 1, with the signature `twice`, doubles."""
    model = Model(tables) if tables is not None else Model()
    plus = model.graph("plus")
    x, out = plus.input(F32, (3,)), plus.tensor(F32, (3,))
    plus.operator("ADD", [x, plus.constant(np.float32([1]))], [out], ("AddOptions", {}))
    plus.outputs(out)
    twice = model.graph("twice")
    x, out = twice.input(F32, (3,)), twice.tensor(F32, (3,))
    twice.operator("ADD", [x, x], [out], ("AddOptions", {}))
    twice.outputs(out)
    model.signature("twice", twice)
    return model.done()


def _running(*calls: tuple[str, str]) -> bytes:
    """A model that runs other files one after the other."""
    model = Model(CIRCLE)
    graph = model.graph()
    x = graph.input(F32, (3,))
    for location, signature in calls:
        out = graph.tensor(F32, (3,))
        options = {"location": location.encode(), **({"signature": signature.encode()} if signature else {})}
        graph.operator("RUN_MODEL", [x], [out], ("RunModelOptions", options))
        x = out
    graph.outputs(x)
    return model.done()


@pytest.mark.parametrize("tables", [None, CIRCLE], ids=["tflite", "circle"])
def test_a_model_runs_other_model_files(tables: Any, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "double.bin").write_bytes(_doubling(tables))
    main = tmp_path / "main.circle"
    calls = [("parts/double.bin", ""), ("parts/double.bin", "twice"), ("parts/double.bin", "twice")]
    main.write_bytes(_running(*calls))
    np.testing.assert_array_equal(_run(main, np.float32([0, 1, 2]))[0], [4, 8, 12])


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("../secret.circle", "leaves the model's folder"),
        ("/etc/passwd", "leaves the model's folder"),
        ("", "leaves the model's folder"),
        ("a\\b", "leaves the model's folder"),
        ("link.circle", "leaves the model's folder through a link"),
        ("absent.circle", "cannot be read"),
        (".", "cannot be read"),
        ("main.circle", "runs itself"),
        ("back.circle", "runs itself"),
        ("empty.circle", "cannot be read"),
        ("text.circle", "expected a tflite or circle model"),
        ("double.circle", "has no signature 'none'"),
    ],
)
def test_invalid_paths_of_other_models_are_rejected(location: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "secret.circle").write_bytes(_doubling(None))
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "link.circle").symlink_to(tmp_path / "secret.circle")
    (folder / "back.circle").write_bytes(_running(("main.circle", "")))
    (folder / "empty.circle").write_bytes(b"")
    (folder / "text.circle").write_bytes(b"not a model at all")
    (folder / "double.circle").write_bytes(_doubling(None))
    main = folder / "main.circle"
    main.write_bytes(_running((location, "none")))
    with pytest.raises(onert.OnertError, match=message):
        onert.load(main)


def test_a_model_loaded_from_memory_cannot_run_other_files() -> None:
    with pytest.raises(onert.OnertError, match="was not loaded from a file"):
        onert.load(_running(("double.circle", "")))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (
            {"half_pixel_centers": 1},
            [0.683134377, 2.477025509, 5.034063339, 1.375, -1.943745494, 1.918246508, 4.475298405],
        ),
        (
            {"half_pixel_centers": 0, "align_corners": 0},
            [1.0, 4.054650307, 4.390907288, -0.630797505, -1.179786444, 3.184107304, 4.629635334],
        ),
        ({"align_corners": 1}, [1.0, 3.65625, 5.0, 1.3125, -2.0, 0.34375, 4.0]),
    ],
)
def test_cubic_interpolation_equals_tensorflow(attributes: dict[str, int], expected: list[float]) -> None:
    """tf.raw_ops.ResizeBicubic, which rounds positions to 1/1024."""
    x = np.float32([1, 5, -2, 4]).reshape(1, 4, 1, 1)
    found = _one("FlexResizeBicubic", [x, np.int32([7, 1])], (F32, (1, 7, 1, 1)), custom=node(**attributes))
    np.testing.assert_allclose(found.reshape(-1), expected, atol=1e-2)


def test_cubic_interpolation_of_two_kinds_at_once_is_refused() -> None:
    x, options = np.zeros((1, 4, 1, 1), np.float32), node(align_corners=1, half_pixel_centers=1)
    with pytest.raises(onert.ModelError, match="align_corners and half_pixel_centers are set"):
        _one("FlexResizeBicubic", [x, np.int32([7, 1])], (F32, (1, 7, 1, 1)), custom=options)
