"""Operations whose sizes only a run knows: rules are checked once for each combination of sizes, tables made once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto, helper

import onert
from onert.ir import Array, CallTypes, DType, Op, RuleError, TensorType
from onert.ir.analysis.run_types import MOST_BYTES, MOST_KEPT, RunTypes
from onert.ir.ops.data_movement.fill import Range, Where
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.lookup.table_of_values import LookUp


def _types(op: Op, inputs: list[TensorType], outputs: list[TensorType]) -> tuple[RunTypes, list[CallTypes]]:
    """The types of an operation, and those that were new."""
    new: list[CallTypes] = []

    def work(_: Op, types: CallTypes) -> int:
        new.append(types)
        return 1

    return RunTypes(op, inputs, outputs, work, range(len(inputs))), new


def _range() -> tuple[RunTypes, list[CallTypes]]:
    one = TensorType(DType.INT32)
    return _types(Range(), [one, one, one], [TensorType(DType.INT32, (None,))])


def _three(limit: int, delta: int = 1) -> list[Array | None]:
    return [np.array(n, np.int32) for n in (0, limit, delta)]


def test_shapes_that_were_seen_need_no_inference_whatever_the_elements() -> None:
    rows, at = TensorType(DType.FLOAT32, (None, 2)), TensorType(DType.INT64, (None,))
    types, new = _types(Gather(), [rows, at], [rows])
    for count, indices in ((3, [0, 2]), (3, [1, 1]), (4, [0, 3]), (3, [2, 0])):
        found = types([np.zeros((count, 2), np.float32), np.array(indices)])
        assert found.types.output.shape == (2, 2)
        assert found.nbytes == 16
    assert [t.input(0).shape[0] for t in new] == [3, 4]


def test_elements_that_determine_a_shape_are_told_apart() -> None:
    types, new = _range()
    assert [types(_three(n)).types.output.shape for n in (3, 5, 3, 5)] == [(3,), (5,), (3,), (5,)]
    assert len(new) == 2


def test_a_rule_is_checked_for_elements_that_were_not_seen() -> None:
    types, _ = _range()
    types(_three(3))
    with pytest.raises(RuleError, match="delta is 0"):
        types(_three(3, 0))
    assert types(_three(3)).types.output.shape == (3,)


def test_only_the_last_combinations_are_kept() -> None:
    types, new = _range()
    for n in (*range(MOST_KEPT + 1), MOST_KEPT, 0):
        assert types(_three(n)).types.output.shape == (n,)
    assert len(new) == MOST_KEPT + 2


def test_types_that_depend_on_many_elements_are_not_kept() -> None:
    row, places = TensorType(DType.BOOL, (None,)), TensorType(DType.INT64, (None, 1))
    few, many = np.ones(2, np.bool_), np.ones(MOST_BYTES + 1, np.bool_)
    for x, count in ((few, 1), (many, 2)):
        types, new = _types(Where(), [row], [places])
        assert [types([x]).types.outputs[0].shape for _ in range(2)] == [(x.size, 1)] * 2
        assert len(new) == count


def test_sizes_that_are_known_with_the_results_are_not_computed_before_them() -> None:
    row = TensorType(DType.INT64, (None,))
    types, new = _types(UniqueSlices(), [row], [row] * 4)
    assert [types([np.arange(n)]).types.outputs[0].shape for n in (3, 3, MOST_BYTES, MOST_BYTES)] == [(None,)] * 4
    assert len(new) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_table_is_made_once_and_finds_nan(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    prepare: Callable[..., Callable[[Array], Array]] = LookUp.prepare

    def counted(self: LookUp, *given: Array | None) -> Callable[[Array], Array]:
        made.append(len(given))
        return prepare(self, *given)

    monkeypatch.setattr(LookUp, "prepare", counted)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    keys = helper.make_tensor("keys_tensor", kind, [2], np.array([1, np.nan], dtype))
    values = helper.make_tensor("values_tensor", TensorProto.STRING, [2], [b"one", b"nan"])
    other = helper.make_tensor("default_tensor", TensorProto.STRING, [1], [b"none"])
    node = helper.make_node(
        "LabelEncoder",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        keys_tensor=keys,
        values_tensor=values,
        default_tensor=other,
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", kind, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
    session = onert.InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
    for _ in range(3):
        (y,) = session.run(None, {"x": np.array([np.nan, 2, 1], dtype)})
        assert y.tolist() == ["nan", "none", "one"]
    assert made == [4]
