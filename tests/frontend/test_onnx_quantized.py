"""Quantised ONNX models with constant weights run on bytes and match ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import onert
from onert.ir import Array
from onert.ir.ops.contraction.block_codes import BlockFullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul

FLOAT, BYTES = TensorProto.FLOAT, {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


def _model(nodes: Sequence[Any], inputs: dict[str, tuple[int, tuple[int, ...]]], constants: dict[str, Array]) -> Any:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    graph.output[0].ClearField("type")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _draw(kind: type, seed: int, *shape: int) -> Array:
    limits = np.iinfo(kind)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(kind)


def _both(model: Any, inputs: dict[str, Array]) -> tuple[Array, Array, Any]:
    (expected,) = ReferenceEvaluator(model).run(None, inputs)
    package = onert.load(model.SerializeToString())
    execution = onert.Execution(onert.compile(package))
    (found,) = execution.run(inputs).values()
    return found, expected, package


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("weights", [np.uint8, np.int8])
@pytest.mark.parametrize("given", [False, True])
def test_a_matmul_integer_with_constant_weights_becomes_a_product_of_bytes(
    kind: type, weights: type, given: bool
) -> None:
    matrix, zero = _draw(np.int8, 3, 37, 19), np.array(0, weights)
    if weights is np.uint8:
        matrix, zero = (matrix.astype(np.int32) + 128).astype(np.uint8), np.array(128, np.uint8)
    inputs: dict[str, Array] = {"x": _draw(kind, 5, 2, 7, 37)}
    constants = {"w": matrix, "wz": zero}
    if given:
        inputs["z"] = np.array(11, kind)
    else:
        constants["z"] = np.array(11, kind)
    declared = {name: (BYTES[kind], array.shape) for name, array in inputs.items()}
    model = _model([helper.make_node("MatMulInteger", ["x", "w", "z", "wz"], ["y"])], declared, constants)
    found, expected, package = _both(model, inputs)
    assert found.dtype == np.int32
    assert np.array_equal(found, expected)
    operations = package.models[0].subgraphs[0].operations
    assert BatchMatMul(output=onert.ir.DType.INT32) in [o.op for o in operations]


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("other", [np.uint8, np.int8])
@pytest.mark.parametrize(("left", "right"), [((9, 37), (37, 19)), ((2, 3, 8, 64), (3, 64, 5)), ((1, 70), (70, 33))])
def test_a_matmul_integer_of_two_inputs_is_exact_and_native(
    kind: type, other: type, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    inputs = {"x": _draw(kind, 5, *left), "w": _draw(other, 3, *right), "z": np.array(11, kind)}
    inputs |= {"wz": _draw(other, 4, *right[-1:] if len(right) == 2 else ())}
    declared = {name: (BYTES[array.dtype.type], array.shape) for name, array in inputs.items()}
    model = _model([helper.make_node("MatMulInteger", [*inputs], ["y"])], declared, {})
    found, expected, package = _both(model, inputs)
    assert np.array_equal(found, expected)
    program = onert.compile(package)
    assert "reference" not in {step.backend for routine in program.routines for step in routine.steps}


def test_a_dynamically_quantised_product_matches_the_evaluator() -> None:
    x = np.random.default_rng(1).normal(0, 2, (5, 48)).astype(np.float32)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
        helper.make_node("Mul", ["s", "ws"], ["m"]),
        helper.make_node("Mul", ["f", "m"], ["y"]),
    ]
    constants = {"w": _draw(np.int8, 2, 48, 21), "ws": np.array(0.013, np.float32)}
    found, expected, _ = _both(_model(nodes, {"x": (FLOAT, x.shape)}, constants), {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("operator", ["MatMul", "Gemm", "Conv"])
def test_a_layer_between_quantisations_is_rarely_off_and_by_at_most_one_step(
    operator: str, each: bool, kind: type
) -> None:
    shape, weight = {"Conv": ((1, 6, 9, 8), (10, 6, 3, 3))}.get(operator, ((9, 70), (70, 10)))
    axis = 0 if operator == "Conv" else 1
    scales = np.random.default_rng(4).uniform(0.001, 0.01, 10 if each else ()).astype(np.float32)
    stored = np.clip(_draw(np.int8, 6, *weight), -127, 127).astype(np.int8)
    zero = np.array(7, kind)
    q = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
    ]
    weighted = helper.make_node("DequantizeLinear", ["w", "ws"], ["real"], axis=axis)
    bias = ["b"] if operator != "MatMul" else []
    pads = {"pads": [1, 1, 1, 1]} if operator == "Conv" else {}
    layer = helper.make_node(operator, ["r", "real", *bias], ["p"], **pads)
    last = helper.make_node("QuantizeLinear", ["p", "ps", "z"], ["y"])
    constants = {
        "s": np.array(0.02, np.float32),
        "z": zero,
        "w": stored,
        "ws": scales,
        "ps": np.array(0.05, np.float32),
    }
    constants |= {"b": np.linspace(-1, 1, 10, dtype=np.float32)} if bias else {}
    model = _model([*q, weighted, layer, last], {"x": (FLOAT, shape)}, constants)
    x = np.random.default_rng(8).normal(0, 1, shape).astype(np.float32)
    found, expected, _ = _both(model, {"x": x})
    assert found.dtype == expected.dtype == kind
    off = np.abs(found.astype(np.int32) - expected.astype(np.int32))
    assert off.max() <= 1
    assert np.count_nonzero(off) <= off.size // 100


@pytest.mark.parametrize(("channels", "groups"), [(12, 4), (12, 12), (12, 2), (48, 4), (48, 8)])
def test_a_quantised_grouped_convolution_accumulates_integers_exactly(channels: int, groups: int) -> None:
    """The accumulators are integers, and the result is their float32 value times the product of the scales."""
    weights = np.clip(_draw(np.int8, 4, 24, channels // groups, 3, 3), -127, 127)
    scales, bias = np.linspace(0.001, 0.03, 24).astype(np.float32), np.linspace(-1, 1, 24).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["v"], axis=0),
        helper.make_node("Conv", ["x", "v", "b"], ["c"], group=groups, pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {"s": np.float32(0.02), "z": np.uint8(113), "w": weights, "ws": scales, "wz": np.zeros(24, np.int8)}
    q = _draw(np.uint8, 6, 1, channels, 9, 8)
    model = _model(nodes, {"q": (BYTES[np.uint8], q.shape)}, {**constants, "b": bias})
    found, expected, _ = _both(model, {"q": q})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    whole = helper.make_node("Conv", ["f", "w"], ["y"], group=groups, pads=[1, 1, 1, 1])
    given = {"f": q.astype(np.float64) - 113, "w": weights.astype(np.float64)}
    declared = {name: (TensorProto.DOUBLE, array.shape) for name, array in given.items()}
    (sums,) = ReferenceEvaluator(_model([whole], declared, {})).run(None, given)
    exact = sums.astype(np.float32) * (np.float32(0.02) * scales).reshape(-1, 1, 1) + bias.reshape(-1, 1, 1)
    np.testing.assert_array_equal(found, np.maximum(exact, 0))


@pytest.mark.parametrize("given", [False, True], ids=["known", "given"])
@pytest.mark.parametrize(
    ("channels", "groups", "zeros", "size", "stride"),
    [
        (6, 1, 0, 3, 1),
        (6, 1, 128, 3, 1),
        (150, 1, 128, 3, 1),
        (150, 1, None, 3, 1),
        (40, 4, 128, 3, 1),
        (8, 8, 0, 3, 1),
        (8, 8, None, 3, 1),
        (400, 2, 128, 3, 1),
        (9, 1, 0, 3, 2),
        (9, 1, 77, 1, 1),
        (9, 1, 77, 1, 2),
    ],
)
@pytest.mark.parametrize("spatial", [(6, 5), (9,)], ids=["plane", "line"])
def test_a_conv_integer_is_exact_and_native(
    channels: int, groups: int, zeros: int | None, size: int, stride: int, spatial: tuple[int, ...], *, given: bool
) -> None:
    """For any number of products, even of the largest values; with one zero point or one per filter, and with an input
    zero point that is constant or known only at run time.
    """
    weights = _draw(np.uint8, 4, 8, channels // groups, *(size for _ in spatial))
    weights[0], x = 255, _draw(np.uint8, 6, 1, channels, *spatial)
    x[0, :, :4] = 255
    wz = np.arange(124, 132, dtype=np.uint8) if zeros is None else np.array(zeros, np.uint8)
    weights = np.clip(weights, wz.max(), 251) if zeros is None else weights
    how: dict[str, Any] = {"group": groups, "strides": [stride for _ in spatial]}
    how["pads"] = [1, *(0 for _ in spatial[1:]), *(1 for _ in spatial)]
    node = helper.make_node("ConvInteger", ["x", "w", "z", "wz"], ["y"], **how)
    inputs: dict[str, Array] = {"x": x, "z": np.array(2, np.uint8)}
    constants: dict[str, Array] = {"w": weights, "wz": wz}
    if not given:
        constants["z"] = inputs.pop("z")
    model = _model([node], {name: (BYTES[np.uint8], array.shape) for name, array in inputs.items()}, constants)
    program = onert.compile(onert.load(model.SerializeToString()))
    assert "reference" not in {step.backend for routine in program.routines for step in routine.steps}
    (found,) = onert.Execution(program).run(inputs).values()
    whole = helper.make_node("Conv", ["f", "v"], ["y"], **how)
    real = {
        "f": x.astype(np.float64) - 2,
        "v": weights.astype(np.float64) - wz.reshape(-1, *(1 for _ in (0, *spatial))),
    }
    declared = {name: (TensorProto.DOUBLE, array.shape) for name, array in real.items()}
    (sums,) = ReferenceEvaluator(_model([whole], declared, {})).run(None, real)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, sums)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_a_max_pool_of_plain_bytes_is_native(kind: type) -> None:
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = _draw(kind, 9, 1, 20, 11, 10)
    found, expected, package = _both(_model([node], {"x": (BYTES[kind], x.shape)}, {}), {"x": x})
    program = onert.compile(package)
    assert "reference" not in {step.backend for routine in program.routines for step in routine.steps}
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "INT8", "UINT8"])
@pytest.mark.parametrize(("axis", "zeros"), [(0, True), (1, True), (0, False), (1, False)])
@pytest.mark.parametrize("product", ["MatMul", "Gemm"])
def test_a_product_reads_blockwise_quantised_weights_without_unpacking_them(
    kind: str, axis: int, product: str, *, zeros: bool
) -> None:
    rng, shape, fewer = np.random.default_rng(5), [(64, 6), (6, 64)][axis], [(4, 6), (6, 4)][axis]
    bits = 4 if kind.endswith("4") else 8
    low = 0 if kind.startswith("U") else -(1 << bits - 1)
    values, zero = (rng.integers(low, low + (1 << bits), size) for size in (shape, fewer))
    scales, number = rng.normal(size=fewer).astype(np.float32), getattr(TensorProto, kind)
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"][: 2 + zeros], ["v"], axis=axis, block_size=16)]
    if product == "Gemm":
        nodes.append(helper.make_node("Gemm", ["x", "v", "c"], ["y"], transB=axis, alpha=0.5, beta=2.0))
    else:
        nodes += [helper.make_node("Transpose", ["v"], ["t"])] * axis
        nodes.append(helper.make_node("MatMul", ["x", "vt"[axis]], ["y"]))
    more = {"c": rng.normal(size=6).astype(np.float32)} if product == "Gemm" else {}
    model = _model(nodes, {"x": (FLOAT, (3, 64))}, {"s": scales, **more})
    model.graph.initializer.append(helper.make_tensor("w", number, shape, values.reshape(-1)))
    model.graph.initializer.extend([helper.make_tensor("z", number, fewer, zero.reshape(-1))] * zeros)
    expected, mine, package = _both(model, {"x": rng.normal(size=(3, 64)).astype(np.float32)})
    assert BlockFullyConnected in {type(each.op) for each in package.models[0].subgraphs[0].operations}
    np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
@pytest.mark.parametrize("blocks", [2, 3])
@pytest.mark.parametrize("zeros", [False, True])
def test_rows_of_a_table_of_narrow_integers_are_read_natively_from_packed_bytes(
    kind: str, blocks: int, *, zeros: bool
) -> None:
    rng, low, width = np.random.default_rng(8), -8 * (kind == "INT4"), 16 * blocks
    values, zero = (rng.integers(low, low + 16, (5, size)) for size in (width, blocks))
    scales, rows = rng.normal(size=(5, blocks)).astype(np.float32), np.array([[0, 4, -1]])
    attributes = {"domain": "com.microsoft", "block_size": 16, "quantize_axis": 1, "gather_axis": 0}
    node = helper.make_node("GatherBlockQuantized", ["t", "i", "s", "z"][: 3 + zeros], ["y"], **attributes)
    model = _model([node], {"i": (TensorProto.INT64, rows.shape)}, {"s": scales})
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    for name, array in {"t": values, **({"z": zero} if zeros else {})}.items():
        stored = helper.make_tensor(name, getattr(TensorProto, kind), array.shape, array.reshape(-1))
        model.graph.initializer.append(stored)
    program = onert.compile(onert.load(model.SerializeToString()))
    (found,) = onert.Execution(program).run({"i": rows}).values()
    differences = values - (zero.repeat(16, axis=1) if zeros else 0)
    np.testing.assert_allclose(found, (differences * scales.repeat(16, axis=1))[rows], rtol=1e-6)
    assert {step.backend for routine in program.routines for step in routine.steps} == {"llvm"}


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("domain", "attributes", "rounds"),
    [("", {}, True), ("", {"precision": FLOAT}, False), ("com.microsoft", {}, False)],
    ids=["by default", "with a precision", "by ONNX Runtime's own operator"],
)
def test_quotients_are_rounded_to_the_type_of_the_scale_or_to_a_precision(
    kind: type, domain: str, attributes: dict[str, int], rounds: bool
) -> None:
    narrow = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    inputs = {"x": np.random.default_rng(2).standard_normal(2000).astype(kind), "s": np.array(0.0173, kind)}
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], domain=domain, **attributes)
    model = _model([node], {"x": (narrow, (2000,)), "s": (narrow, ())}, {"z": np.array(3, np.int8)})
    model.opset_import[0].version, model.ir_version = 23, 11
    (found,) = onert.Execution(onert.compile(onert.load(model.SerializeToString()))).run(inputs).values()
    exact = inputs["x"].astype(np.float32) / np.float32(inputs["s"])
    rounded, whole = (np.clip(np.rint(q.astype(np.float32)) + 3, -128, 127) for q in (exact.astype(kind), exact))
    assert (rounded != whole).any()
    assert (found == (rounded if rounds else whole)).all()
