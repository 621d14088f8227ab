"""`parse` reads what `text` writes as an equal value, and rejects anything else with its position."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from attrs import evolve
from cases import all_cases
from cases.case import Case
from hypothesis import given, settings
from shared_material import REPOSITORY, SHARED, needs_shared

import onert
from onert.ir import Constant, DType, ModelError, Operand, Operation, Quantization, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.text import parse, parse_subgraph, text

CASES = list(all_cases())


def _model(case: Case) -> Subgraph:
    """One operation as a subgraph: constants where the case has constants, inputs otherwise."""
    types = case.types()
    operands: list[Operand] = []
    inputs: list[int | None] = []
    for at, (type_, array) in enumerate(zip(types.inputs, case.inputs, strict=True)):
        if type_ is None or array is None:
            inputs.append(None)
            continue
        inputs.append(len(operands))
        data = Constant(array) if at in case.constant else None
        operands.append(Operand(evolve(type_, data=None), f"in {at}", data))
    results = tuple(range(len(operands), len(operands) + len(types.outputs)))
    operands += [Operand(evolve(type_, data=None), 'a "quoted" name') for type_ in types.outputs]
    given = tuple(i for i in inputs if i is not None and operands[i].data is None)
    operation = Operation(case.op, tuple(inputs), results, "operation 0")
    return Subgraph(tuple(operands), (operation,), given, results, "main")


@pytest.mark.parametrize("label", sorted({case.op.label for case in CASES}))
def test_every_operation_is_read_back_unchanged(label: str) -> None:
    for case in (case for case in CASES if case.op.label == label):
        subgraph = _model(case)
        assert parse_subgraph(text(subgraph)) == subgraph, case.name


_names = st.text(max_size=8)
_shapes = st.lists(st.none() | st.integers(0, 2**31 - 1), max_size=4).map(tuple)
_scales = st.floats(1e-30, 1e30).map(lambda x: float(np.float32(x))).filter(lambda x: x > 0)
_quantizations = st.none() | st.builds(lambda s, z: Quantization((s,), (z,)), _scales, st.integers(-128, 127))
_types = st.builds(
    lambda dtype, shape, q: TensorType(dtype, shape, q if dtype.is_integer else None),
    st.sampled_from([d for d in DType if not d.is_handle]),
    _shapes,
    _quantizations,
)
_arrays = st.one_of(
    st.lists(st.floats(width=32), max_size=20).map(lambda xs: np.array(xs, np.float32)),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20).map(lambda xs: np.array(xs, np.int64)),
    st.lists(st.booleans(), max_size=20).map(np.array).map(lambda a: a.astype(np.bool_)),
)


@given(st.lists(st.tuples(_types, _names), max_size=5), st.lists(st.tuples(_arrays, _names), max_size=3), _names)
@settings(max_examples=200, deadline=None)
def test_operands_of_any_type_name_and_elements_are_read_back(
    plain: list[tuple[TensorType, str]], constants: list[tuple[Any, str]], description: str
) -> None:
    operands = [Operand(type_, name) for type_, name in plain]
    operands += [
        Operand(TensorType(DType.from_numpy(array.dtype), array.shape), name, Constant(array))
        for array, name in constants
    ]
    model = Subgraphs((Subgraph(tuple(operands), (), tuple(range(len(plain))), ()),), description=description)
    assert parse(text(model)) == model


def _wide() -> Subgraphs:
    b = Builder("a b")
    x = b.input(TensorType(DType.FLOAT32, (1, None)), "x")
    total = b.variable(TensorType(DType.FLOAT32, (1, 1)), "total")
    y = b.add(Binary(BinaryKind.ADD), x, total)
    b.update(total, b.constant(np.ones((1, 1), np.float32)))
    return b.model([y])


def test_variables_and_their_updates_are_read_back() -> None:
    model = _wide()
    assert parse(text(model)) == model


@pytest.mark.parametrize("name", ["digits_float", "digits_int8"])
def test_shipped_models_are_read_back(name: str) -> None:
    for model in onert.load(REPOSITORY / "nnpackage/examples" / name).models:
        assert parse(text(model)) == model


@needs_shared
def test_models_of_other_converters_are_read_back() -> None:
    """Control flow, state and signatures as real converters write them."""
    files = sorted((SHARED / "conformance" / "nnapi").glob("*while*.tflite"))
    assert files
    for file in [*files, SHARED / "models" / "samsung-one-vscode" / "while_000.circle"]:
        for model in onert.load(file).models:
            assert parse(text(model)) == model


_GOOD = text(_wide())
BAD = {
    "an early end": (_GOOD[: len(_GOOD) // 2], r"line \d+"),
    "an unknown operation": (_GOOD.replace("Binary", "Trinary"), "Trinary"),
    "an unknown attribute": (_GOOD.replace("power_of_two", "power_of_three"), "power_of_three"),
    "an unknown kind": (_GOOD.replace("BinaryKind.ADD", "BinaryKind.PLUS"), "PLUS"),
    "an unknown type": (_GOOD.replace("f32", "f33", 1), "f33"),
    "words after the end": (_GOOD + "more", r"line \d+"),
    "a control character": (_GOOD.replace("model", "mo\x00del", 1), r"line 1"),
    "nothing": ("", "expected"),
    "endless nesting": ("model " + "(" * 100_000, "line 1"),
}


@pytest.mark.parametrize(("source", "message"), BAD.values(), ids=BAD.keys())
def test_invalid_text_is_rejected_with_its_position(source: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        parse(source)


@given(st.integers(0, len(_GOOD) - 1), st.characters(max_codepoint=127))
@settings(max_examples=300, deadline=None)
def test_one_wrong_letter_gives_a_model_or_a_model_error(at: int, letter: str) -> None:
    found: object
    try:
        found = parse(_GOOD[:at] + letter + _GOOD[at + 1 :])
    except ModelError as error:
        found = error
    assert isinstance(found, Subgraphs | ModelError)


def test_text_without_constants_states_their_sizes() -> None:
    b = Builder()
    x = b.constant(np.arange(100, dtype=np.float32), name="table")
    assert "<400 bytes>" in text(b.model([b.add(Unary(UnaryKind.RELU), x)]), constants=False)
