"""What real TFLite files do beyond the letter of the schema, and what none may do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import flatbuffers
import litert_peer as litert
import numpy as np
import pytest

import onert
from onert.frontend.tflite_schema.custom_ops import CUSTOM_OPS
from onert.ir import Array, CallTypes, CompileError, DType, ModelError, Quantization, TensorType

schema = litert.schema
_F32 = TensorType(DType.FLOAT32, (1, 3))
_ONES = np.ones((2, 3), np.float32)


def _dense(weights: Array = _ONES, dtype: DType = DType.FLOAT32, bias: bool = True) -> bytes:
    """y = x wᵀ + (10, 20)."""
    types = CallTypes(
        (_F32, TensorType(dtype, weights.shape), TensorType(DType.FLOAT32, (2,)) if bias else None),
        (TensorType(DType.FLOAT32, (1, 2)),),
    )
    constants = {1: weights} | ({2: np.array([10, 20], np.float32)} if bias else {})
    return litert.one_operator("FULLY_CONNECTED", ("FullyConnectedOptions", {}), types, constants)


def _changed(model: bytes, change: Callable[[Any], None]) -> bytes:
    """The model with its object form changed by a function."""
    found = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(model, 0))
    change(found)
    builder = flatbuffers.Builder(1024)
    builder.Finish(found.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _run(model: bytes, *inputs: Array) -> Array:
    outputs = onert.Execution(onert.compile(onert.load(model))).run(inputs)
    return next(iter(outputs.values()))


_X = np.array([[1, 2, 3]], np.float32)


def test_the_larger_of_the_two_operator_codes_counts() -> None:
    def old(model: Any) -> None:
        model.operatorCodes[0].builtinCode = 0

    def new(model: Any) -> None:
        model.operatorCodes[0].deprecatedBuiltinCode = 0

    for change in (old, new):
        np.testing.assert_array_equal(_run(_changed(_dense(), change), _X), [[16, 26]])


def test_an_operator_without_its_options_has_the_schema_s_defaults() -> None:
    def drop(model: Any) -> None:
        operator = model.subgraphs[0].operators[0]
        operator.builtinOptions, operator.builtinOptionsType = None, 0

    np.testing.assert_array_equal(_run(_changed(_dense(), drop), _X), [[16, 26]])


@pytest.mark.parametrize("cut", [False, True], ids=["-1", "left out"])
def test_an_optional_operand_may_be_minus_one_or_left_out(cut: bool) -> None:
    def drop(model: Any) -> None:
        operator = model.subgraphs[0].operators[0]
        operator.inputs = list(operator.inputs)[:2]

    model = _dense(bias=False)
    np.testing.assert_array_equal(_run(_changed(model, drop) if cut else model, _X), [[6, 6]])


def test_elements_may_be_stored_after_the_flatbuffer(tmp_path: Path) -> None:
    """Converters do so for models over 2 GiB: buffers have an offset from the start of the file and a size."""
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    raw = weights.tobytes()

    def point(offset: int) -> bytes:
        def change(model: Any) -> None:
            buffer = model.buffers[1]
            buffer.data, buffer.offset, buffer.size = None, offset, len(raw)

        return _changed(_dense(weights), change)

    at = -(-len(point(1 << 20)) // 16) * 16
    file = tmp_path / "model.tflite"
    file.write_bytes(point(at).ljust(at, b"\0") + raw)
    expected = _X @ weights.T + [10, 20]
    np.testing.assert_array_equal(_run(file.read_bytes(), _X), expected)
    np.testing.assert_array_equal(
        next(iter(onert.Execution(onert.compile(onert.load(file))).run([_X]).values())), expected
    )
    with pytest.raises(ModelError, match="buffer"):
        onert.load(file.read_bytes()[:-4])


def test_float16_weights_are_read_exactly() -> None:
    weights = np.array([[0.5, 1.5, -2], [3, 0, 1]], np.float16)
    types = CallTypes((TensorType(DType.FLOAT16, (2, 3)),), (TensorType(DType.FLOAT32, (2, 3)),))
    model = litert.one_operator("DEQUANTIZE", ("DequantizeOptions", {}), types, {0: weights})
    np.testing.assert_array_equal(_run(model), weights.astype(np.float32))


def test_packed_four_bit_elements_come_low_half_first() -> None:
    weights = np.array([[-8, 7, 1], [2, -3, 4]], np.int8)
    scales = Quantization((0.5,), (0,))
    types = CallTypes((TensorType(DType.INT4, (2, 3), scales),), (TensorType(DType.FLOAT32, (2, 3)),))
    model = litert.one_operator("DEQUANTIZE", ("DequantizeOptions", {}), types, {0: weights})
    np.testing.assert_array_equal(_run(model), weights * np.float32(0.5))


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16], ids=str)
def test_the_scale_zero_is_accepted_for_constant_zeros_only(dtype: DType) -> None:
    """The converter writes this scale for the first state of an unrolled layer."""

    def unscaled(model: Any) -> None:
        model.subgraphs[0].tensors[0].quantization.scale = [0.0]

    types = CallTypes((TensorType(dtype, (3,), Quantization((0.5,), (0,))),), (TensorType(DType.FLOAT32, (3,)),))

    def model(elements: list[int]) -> bytes:
        constant = np.array(elements, dtype.numpy)
        return _changed(litert.one_operator("DEQUANTIZE", ("DequantizeOptions", {}), types, {0: constant}), unscaled)

    np.testing.assert_array_equal(_run(model([0, 0, 0])), np.zeros(3))
    with pytest.raises(ModelError, match="scale"):
        _run(model([0, 100, -3]))


def test_the_shape_signature_marks_unknown_dimensions() -> None:
    def open_batch(model: Any) -> None:
        graph = model.subgraphs[0]
        for tensor in (graph.inputs[0], graph.outputs[0]):
            graph.tensors[tensor].shapeSignature = [-1, int(graph.tensors[tensor].shape[1])]

    program = onert.compile(onert.load(_changed(_dense(), open_batch)))
    assert program.inputs[0].shape in ((None, 3), (1, 3))
    execution = onert.Execution(program)
    execution.set_input_shape(0, (4, 3))
    assert next(iter(execution.run([np.ones((4, 3), np.float32)]).values())).shape == (4, 2)


def test_signatures_give_tensors_their_own_names() -> None:
    def sign(model: Any) -> None:
        def named(name: str, tensor: int) -> Any:
            made = schema.TensorMapT()
            made.name, made.tensorIndex = name, tensor
            return made

        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = "serve", 0
        graph = model.subgraphs[0]
        signature.inputs = [named("images", graph.inputs[0])]
        signature.outputs = [named("scores", graph.outputs[0])]
        model.signatureDefs = [signature]

    package = onert.load(_changed(_dense(), sign))
    assert list(package.signatures) == ["serve"]
    outputs = onert.Execution(onert.compile(package, signature="serve")).run({"images": _X})
    np.testing.assert_array_equal(outputs["scores"], [[16, 26]])
    with pytest.raises(CompileError, match="'other'"):
        onert.compile(package, signature="other")


def test_all_operators_without_implementation_are_named_at_once() -> None:
    def spoil(model: Any) -> None:
        graph = model.subgraphs[0]
        for code in ("FlexFirst", "FlexSecond"):
            made = schema.OperatorCodeT()
            made.builtinCode, made.deprecatedBuiltinCode, made.customCode = 32, 32, code
            model.operatorCodes.append(made)
            tensor = schema.TensorT()
            tensor.name, tensor.shape, tensor.type, tensor.buffer = code, [1, 2], 0, 0
            graph.tensors.append(tensor)
            operator = schema.OperatorT()
            operator.opcodeIndex = len(model.operatorCodes) - 1
            operator.inputs, operator.outputs = [len(graph.tensors) - 2], [len(graph.tensors) - 1]
            graph.operators.append(operator)
        graph.outputs = [len(graph.tensors) - 1]

    package = onert.load(_changed(_dense(), spoil))
    with pytest.raises(CompileError, match=r"FlexFirst.*FlexSecond"):
        onert.compile(package)


def test_a_custom_operator_may_be_written_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(x: Array, *, options: bytes) -> Array:
        assert options == b"\x02"
        return x * np.float32(options[0])

    def make_custom(model: Any) -> None:
        code = model.operatorCodes[0]
        code.builtinCode, code.deprecatedBuiltinCode, code.customCode = 32, 32, "Twice"
        operator = model.subgraphs[0].operators[0]
        operator.builtinOptions, operator.builtinOptionsType = None, 0
        operator.customOptions = np.array([2], np.uint8)

    types = CallTypes((_F32,), (_F32,))
    model = _changed(litert.one_operator("ABS", ("AbsOptions", {}), types, {}), make_custom)
    with pytest.raises(CompileError, match="Twice"):
        onert.compile(onert.load(model))
    monkeypatch.setitem(CUSTOM_OPS, "Twice", None)  # so that the registration is undone afterwards
    onert.custom_op("Twice")(double)
    np.testing.assert_array_equal(_run(model, _X), _X * 2)


@pytest.mark.parametrize(
    ("index", "says"), [(99, r"tensor 99|names tensor|99"), (-2, "-2")], ids=["outside", "negative"]
)
def test_tensor_numbers_are_checked(index: int, says: str) -> None:
    def spoil(model: Any) -> None:
        model.subgraphs[0].operators[0].inputs = [index, 1, 2]

    with pytest.raises(ModelError, match=says):
        onert.load(_changed(_dense(), spoil))


@pytest.mark.parametrize("size", [0, 1, 7, 8, 20])
def test_short_files_are_refused(size: int) -> None:
    with pytest.raises(ModelError):
        onert.load(_dense()[:size])


def test_every_truncation_of_a_model_is_refused_or_read_in_full() -> None:
    """A truncated file either lacks something and is refused, or lost only padding."""
    model = _dense()
    whole = onert.load(model).models
    refused = 0
    for size in range(len(model)):
        try:
            found = onert.load(model[:size]).models
        except ModelError:
            refused += 1
            continue
        assert found == whole
    assert refused > len(model) * 0.9
