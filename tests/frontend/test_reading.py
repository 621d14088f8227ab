"""Reading what files may express in several ways: sparse tensors, orders of operators, repeated inputs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from model_writer import CIRCLE, LiteRt, Model, schema

import onert
from onert.frontend.tflite_schema import sparse_tensors
from onert.frontend.tflite_schema.sparse_tensors import Level, Sparsity
from onert.ir import Array, DType, ModelError

# ---- sparse tensors


def compressed(dense: Array) -> Sparsity:
    """The sparsity of a matrix stored by rows with the columns of its nonzero elements."""
    rows, columns = np.nonzero(dense)
    segments = np.concatenate([[0], np.cumsum([(rows == r).sum() for r in range(len(dense))])])
    return Sparsity((0, 1), (), (Level(len(dense)), Level(dense.shape[1], segments, columns)), len(columns))


@pytest.mark.parametrize("seed", range(5))
def test_sparse_rows_are_placed_by_their_segments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 9, (5, 7)) * (rng.random((5, 7)) < 0.4)
    dense[2] = 0
    values = dense[np.nonzero(dense)]
    np.testing.assert_array_equal(compressed(dense).densify(values, dense.shape), dense)


def test_dense_dimensions_are_stored_in_traversal_order() -> None:
    dense = np.arange(1, 7).reshape(2, 3)
    rows_first = Sparsity((0, 1), (), (Level(2), Level(3)), 6)
    columns_first = Sparsity((1, 0), (), (Level(3), Level(2)), 6)
    np.testing.assert_array_equal(rows_first.densify(dense.reshape(-1), (2, 3)), dense)
    np.testing.assert_array_equal(columns_first.densify(dense.T.reshape(-1), (2, 3)), dense)


def test_sparse_blocks_are_expanded_in_place() -> None:
    # Rows of 2x2 blocks: the first row has a block at columns 2 and 3, the second one at columns 0 and 1.
    level = Level(2, np.array([0, 1, 2]), np.array([1, 0]))
    found = Sparsity((0, 1, 2, 3), (0, 1), (Level(2), level, Level(2), Level(2)), 8)
    dense = found.densify(np.arange(1, 9), (4, 4))
    assert dense.tolist() == [[0, 0, 1, 2], [0, 0, 3, 4], [5, 6, 0, 0], [7, 8, 0, 0]]


def test_elements_beyond_the_last_whole_block_are_zero() -> None:
    assert sparse_tensors._sizes((2, 7), (1,), [2, 0, 4], (0, 1, 2)) == [2, 1, 4]
    found = Sparsity((0, 1, 2), (1,), (Level(2), Level(1, np.array([0, 0, 1]), np.array([0])), Level(4)), 4)
    assert found.densify(np.arange(1, 5), (2, 7)).tolist() == [[0] * 7, [1, 2, 3, 4, 0, 0, 0]]


@pytest.mark.parametrize("size", [-1, 0, 8])
def test_blocks_are_no_larger_than_their_dimension(size: int) -> None:
    with pytest.raises(ModelError, match="dimension 1 of 7 is stored in blocks of"):
        sparse_tensors._sizes((2, 7), (1,), [2, 0, size], (0, 1, 2))


def described(segments: list[int], indices: list[int]) -> Any:
    """The table of a compressed dimension."""
    vectors = {"array_segments": segments, "array_indices": indices}

    def scalar(at: int, kind: str, default: int) -> int:
        return 1  # compressed; vectors of 32 bits

    def table(at: int) -> Any:
        (name,) = (n for n in vectors if sparse_tensors.slot("DimensionMetadata", n) == at)
        return SimpleNamespace(array=lambda position, kind: np.array(vectors[name], np.int32))

    return SimpleNamespace(scalar=scalar, table=table)


@pytest.mark.parametrize(
    ("segments", "indices", "right"),
    [
        ([0, 2, 3], [0, 4, 2], True),
        ([0, 0, 0], [], True),
        ([0, 2, 3], [0, 5, 2], False),  # an index equal to the size
        ([0, 2, 3], [0, -1, 2], False),
        ([0, 2, 2], [0, 4, 2], False),  # an index after the last segment
        ([0, 2, 4], [0, 4, 2], False),
        ([1, 2, 3], [0, 4, 2], False),
        ([0, 3, 2], [0, 4], False),
        ([0, 3], [0, 4, 2], False),
    ],
)
def test_segments_delimit_the_indices_and_indices_are_in_range(
    segments: list[int], indices: list[int], right: bool
) -> None:
    if right:
        level, count = sparse_tensors._level(described(segments, indices), 5, 2)
        assert count == len(indices)
        assert level.size == 5
    else:
        with pytest.raises(ModelError):
            sparse_tensors._level(described(segments, indices), 5, 2)


# ---- graphs


def chained(order: tuple[int, ...], inputs: tuple[int, ...] = (0,)) -> bytes:
    """-|x| and its square, with the file's operators in the given order."""
    model = Model()
    graph = model.graph()
    x, magnitude, negative, square = (graph.tensor(DType.FLOAT32, (3,), None, None) for _ in range(4))
    operators = [
        ("ABS", x, magnitude, "Abs"),
        ("NEG", magnitude, negative, "Neg"),
        ("SQUARE", negative, square, "Square"),
    ]
    for at in order:
        code, source, result, table = operators[at]
        graph.operator(code, [source], [result], (f"{table}Options", {}))
    for tensor in inputs:
        graph.table.inputs.append(tensor)
    graph.outputs(negative, square)
    return model.done()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_operators_may_be_stored_in_any_order(order: tuple[int, ...]) -> None:
    program = onert.compile(onert.load(chained(order)))
    found = onert.Execution(program).run([np.float32([1, -2, 3])])
    assert [o.tolist() for o in found.values()] == [[-1, -2, -3], [1, 4, 9]]


def test_a_tensor_may_be_an_input_only_once() -> None:
    with pytest.raises(ModelError, match="tensor 0 is an input twice"):
        onert.load(chained((0, 1, 2), (0, 0)))


@pytest.mark.parametrize("index", [4, 5, -1])
def test_an_input_must_be_a_tensor_of_the_graph(index: int) -> None:
    with pytest.raises(ModelError, match=f"inputs name tensor {index}, expected 0 to 3"):
        onert.load(chained((0, 1, 2), (0, index)))


def test_a_tensor_that_is_read_must_be_written() -> None:
    with pytest.raises(ModelError, match="is read, but nothing writes it"):
        onert.load(chained((1, 2)))


# ---- state and quantisation, which formats express in different ways


def test_a_second_layer_reads_the_state_written_by_the_first() -> None:
    rng = np.random.default_rng(0)
    model = Model()
    graph = model.graph()
    x = graph.input(DType.FLOAT32, (1, 3))
    state = graph.tensor(DType.FLOAT32, (1, 4))
    graph.table.tensors[state].isVariable = True
    options = ("RNNOptions", {"fusedActivationFunction": 4})
    for _ in range(2):
        weights = [graph.constant(rng.normal(size=s).astype(np.float32)) for s in ((4, 3), (4, 4), (4,))]
        out = graph.tensor(DType.FLOAT32, (1, 4))
        graph.operator("RNN", [x, *weights, state], [out], options)
        graph.outputs(out)
    content = model.done()
    theirs, mine = LiteRt(content), onert.Execution(onert.compile(onert.load(content)))
    for step in rng.normal(size=(3, 1, 3)).astype(np.float32):
        for found, wanted in zip(mine.run([step]).values(), theirs(step), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize(("tables", "kind"), [(schema, 2), (CIRCLE, 3)], ids=["tflite", "circle"])
def test_blockwise_scales_are_read_by_the_format_s_own_number_for_them(tables: Any, kind: int) -> None:
    model = Model(tables)
    graph = model.graph()
    values = np.arange(-8, 8, dtype=np.int8).reshape(2, 8)
    scales = np.float32([0.5, 0.25, 2, 1])
    x, stored, by = graph.input(DType.FLOAT32, (2, 8)), graph.constant(values), graph.constant(scales)
    details = schema.BlockwiseQuantizationT()
    details.scales, details.zeroPoints, details.blockSize = by, -1, 4
    found = tables.QuantizationParametersT()
    found.detailsType, found.details = kind, details
    graph.table.tensors[stored].quantization = found
    whole, out = graph.tensor(DType.FLOAT32, (2, 8)), graph.tensor(DType.FLOAT32, (2, 8))
    graph.operator("DEQUANTIZE", [stored], [whole], ("DequantizeOptions", {}))
    graph.operator("ADD", [x, whole], [out], ("AddOptions", {}))
    graph.outputs(out)
    (result,) = onert.Execution(onert.compile(onert.load(model.done()))).run([np.zeros((2, 8), np.float32)]).values()
    np.testing.assert_array_equal(result, values * np.repeat(scales, 4).reshape(2, 8))
