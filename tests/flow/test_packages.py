"""Packages converted to flows compute the same after the flow is saved, loaded and compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from cases import all_cases
from cases.case import Case
from shared_material import REPOSITORY, SHARED, needs_shared

import onert
import onert.flow as myelin
from flow.compiling import compiled
from onert.flow.convert.repeats import RULES as REPEATS
from onert.flow.convert.translations import RULES
from onert.ir import Array, CompileError, DType, ExecutionError, ModelError, OnertError, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import Slice, StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.softmax import Softmax


def through_a_file(flow: myelin.Flow, folder: Path) -> myelin.Network:
    path = folder / "model.flow"
    flow.save(path)
    return compiled(path)


def drawn(infos: Sequence[onert.TensorInfo]) -> dict[str, Array]:
    """Random inputs for a program; integers and booleans are 0 or 1."""
    rng = np.random.default_rng(3)
    found = {}
    for info in infos:
        shape = tuple(d or 1 for d in info.shape)
        dtype = info.dtype.numpy
        numbers = rng.integers(0, 2, shape) if dtype.kind in "iub" else rng.standard_normal(shape)
        found[info.name] = numbers.astype(dtype)
    return found


def check(package: Package, folder: Path) -> int:
    """Compare each function of the converted flow with the package's signature; returns how many were compared."""
    net = through_a_file(myelin.from_package(package), folder)
    compared = 0
    for key, cell in net.cells.items():
        signature = {"signature": key} if package.signatures else {}
        program = onert.compile(package, num_threads=1, **signature)
        inputs = drawn(program.inputs)
        try:
            expected = onert.Execution(program).run(inputs)
        except ExecutionError:  # a random index may be out of range
            continue
        data = cell.instance()
        for name, array in inputs.items():
            if f"{key}/{name}" in cell:
                data[f"{key}/{name}"] = array
        data.compute()
        for name, reference in expected.items():
            found = np.asarray(data.tensor(f"{key}/{name}"))
            assert (found.dtype, found.shape) == (reference.dtype, reference.shape)
            np.testing.assert_allclose(found, reference, rtol=1e-4, atol=1e-5)
        compared += 1
    return compared


@needs_shared
@pytest.mark.parametrize(
    ("model", "functions"),
    [
        ("ai-edge-quantizer/toy_model_with_kv_cache_multi_signature.tflite", 2),
        ("generated-keras/bert_small_4l_256h_s128_fp32.tflite", 1),
    ],
)
def test_a_model_computes_the_same_after_conversion_to_a_flow(model: str, functions: int, tmp_path: Path) -> None:
    assert check(onert.load(SHARED / "models" / model), tmp_path) == functions


@needs_shared
@pytest.mark.parametrize(("folder", "least"), [("glow_tflite", 30), pytest.param("nnapi", 90, marks=pytest.mark.long)])
def test_conformance_cases_compute_the_same_after_conversion_to_flows(folder: str, least: int, tmp_path: Path) -> None:
    compared = 0
    for path in sorted((SHARED / "conformance" / folder).glob("*.tflite")):
        try:
            package = onert.load(path)
            myelin.from_package(package)
        except (CompileError, ModelError):
            continue
        compared += check(package, tmp_path)
    assert compared >= least


def test_one_error_lists_all_operations_that_flows_do_not_have() -> None:
    package = onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_float")
    with pytest.raises(CompileError, match=r"flows have no operations for operation \d+ CONV_2D, ") as caught:
        myelin.from_package(package)
    missing = [o for o in package.model.primary.operations if re.search("CONV|POOL", str(o))]
    assert all(str(operation) in str(caught.value) for operation in missing)


@needs_shared
def test_conversion_errors_name_quantised_tensors() -> None:
    package = onert.load(SHARED / "models" / "mlperf-tiny" / "kws_ref_model.tflite")
    with pytest.raises(CompileError, match=r"input 'input_1' \(quantised tensors\), operation 0 CONV_2D"):
        myelin.from_package(package)


def test_a_flow_loaded_as_a_package_converts_back_to_a_flow(tmp_path: Path) -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x", myelin.DT_FLOAT, [2, 4])
    f.softmax(f.gelu(f.matmul(x, f.array("W", np.eye(4, dtype="f4")))), axis=1, name="y")
    f.argmax(x, 1, name="index")
    flow.save(tmp_path / "f.flow")
    package = onert.load(tmp_path / "f.flow")
    assert [v.name for v in package.signatures["f"].inputs] == ["f/x"]
    assert check(package, tmp_path) == 1


def convertible_cases() -> Iterator[Case]:
    """The cases of the operations that can be converted to flows."""
    return (case for case in all_cases() if type(case.op) in (*RULES, *REPEATS))


def together(chosen: Sequence[Case]) -> tuple[Package, list[Array]]:
    """One model that contains all the cases, and the arrays of its inputs."""
    b, given, made = Builder(), [], []
    for case in chosen:
        operands: list[int | None] = []
        for at, (array, type_) in enumerate(zip(case.inputs, case.input_types(known=False), strict=True)):
            if array is None or type_ is None:
                operands.append(None)
            elif at in case.constant or (at and (array.dtype.kind in "iu" or array.size == 1)):
                operands.append(b.constant(array, dtype=type_.dtype))
            else:
                operands.append(b.input(type_.plain(), f"x{len(given)}"))
                given.append(array)
        made += b.add_many(case.op, *operands)
    return Package((b.model(made),)), given


def is_convertible(case: Case) -> bool:
    """Whether a case can be converted to a flow: not if it is quantised or has an element type that flows lack."""
    if any(q is not None for q in (*case.quantization, *case.result_quantization)):
        return False
    try:
        myelin.from_package(together([case])[0])
    except OnertError:
        return False
    return True


@pytest.mark.parametrize("part", range(4))
def test_operation_cases_compute_the_same_after_conversion_to_a_flow(part: int) -> None:
    chosen = [case for case in convertible_cases() if is_convertible(case)]
    if part == 0:
        assert {type(case.op) for case in chosen} == {*RULES, *REPEATS}
    package, given = together(chosen[part::4])
    program = onert.compile(package, backends=("reference",), optimize=False)
    names = [described.name for described in program.inputs]
    expected = onert.Execution(program).run(dict(zip(names, given, strict=True)))
    flow = myelin.from_package(package)
    cell = compiled(flow).cell("main")
    data = cell.instance()
    for name, array in zip(names, given, strict=True):
        if f"main/{name}" in cell:  # absent if nothing reads it
            np.asarray(data.tensor(f"main/{name}"))[...] = array
    data.compute()
    found = [np.asarray(data.tensor(v)) for v in flow.vars.values() if v.output]
    for mine, theirs in zip(found, expected.values(), strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


def with_open_size(operators: Callable[[Builder, int], int], shape: tuple[int | None, ...]) -> Package:
    """A model whose input has a dynamic dimension where `shape` has None."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, tuple(size or 1 for size in shape)), "x")
    result = operators(b, x)
    model = b.model([result])
    graph = model.primary
    at = graph.inputs[0]
    operands = list(graph.operands)
    operands[at] = evolve(operands[at], signature_shape=shape)
    operands[graph.outputs[0]] = evolve(operands[graph.outputs[0]], name="y")
    return Package((evolve(model, subgraphs=(evolve(graph, operands=tuple(operands)),)),))


def _layer(b: Builder, x: int) -> int:
    weight = b.constant(np.arange(24, dtype="f4").reshape(4, 6) / 24)
    return b.add(Softmax(), b.add(FullyConnected(Activation.RELU), x, weight, b.constant(np.ones(4, "f4"))))


OPEN: dict[str, tuple[Callable[[Builder, int], int], Sequence[int]]] = {
    "a layer": (_layer, [-1, 4]),
    "another shape": (lambda b, x: b.add(Reshape((-1, 2, 3)), x), [-1, 2, 3]),
    "a function": (lambda b, x: b.add(Unary(UnaryKind.TANH), b.add(Binary(BinaryKind.ADD), x, x)), [-1, 6]),
    "a part": (lambda b, x: b.add(Slice(), x, b.constant(_i(0, 2)), b.constant(_i(-1, 3))), [-1, 3]),
    "a sum of all": (lambda b, x: b.add(Reduce(Reduction.SUM), x, b.constant(_i(0, 1))), []),
    "a mean over what is open": (lambda b, x: b.add(Reduce(Reduction.MEAN, True), x, b.constant(_i(0))), [1, 6]),
}


def _i(*numbers: int) -> Array:
    return np.array(numbers, "i4")


@pytest.mark.parametrize("case", OPEN)
def test_a_dynamic_batch_stays_dynamic(case: str, tmp_path: Path) -> None:
    operators, expected = OPEN[case]
    package = with_open_size(operators, (None, 6))
    flow = myelin.from_package(package)
    (x,) = (v for v in flow.vars.values() if v.input)
    (y,) = (v for v in flow.vars.values() if v.output)
    is_open = not case.startswith("a mean")
    assert (x.shape, y.shape) == ([-1 if is_open else 1, 6], expected)
    assert check(package, tmp_path) == 1
    flow.save(tmp_path / "open.flow")
    loaded = onert.load(tmp_path / "open.flow")
    (described,) = onert.compile(loaded, num_threads=1).inputs
    assert described.open_shape == (None if is_open else 1, 6)
    if is_open:
        given = np.random.default_rng(5).random((3, 6)).astype("f4")
        (found,) = onert.Execution(onert.compile(loaded, num_threads=1)).run({described.name: given}).values()
        program = onert.compile(package, num_threads=1)
        (reference,) = onert.Execution(program).run({program.inputs[0].name: given}).values()
        np.testing.assert_allclose(found, reference, rtol=1e-5)


@needs_shared
@pytest.mark.long
def test_every_convertible_shared_model_computes_the_same_as_a_flow(tmp_path: Path) -> None:
    compared = 0
    for path in sorted((SHARED / "models").rglob("*.tflite")):
        try:
            package = onert.load(path)
            flow = myelin.from_package(package)
        except (CompileError, ModelError):
            continue
        compared += check(package, tmp_path) if flow.ops else 0
    assert compared >= 2


def _sliced(begin: Sequence[int], end: Sequence[int], **masks: int) -> Callable[[Builder, int], int]:
    return lambda b, x: b.add(
        StridedSlice(**masks), x, b.constant(_i(*begin)), b.constant(_i(*end)), b.constant(_i(1, 1))
    )


SLICED = {
    "columns from the second": (_sliced([0, 2], [0, 6], begin_mask=1, end_mask=1), (4, None)),
    "rows from the second": (_sliced([1, 0], [0, 6], end_mask=1), (None, 6)),
    "the first column": (_sliced([0, 0], [0, 1], begin_mask=3, end_mask=3, shrink_axis_mask=2), (4, None)),
}


@pytest.mark.parametrize("case", SLICED)
def test_an_axis_of_which_a_part_is_selected_does_not_stay_open(case: str) -> None:
    flow = myelin.from_package(with_open_size(*SLICED[case]))
    assert [v.shape for v in flow.vars.values() if v.input] == [[size or 1 for size in SLICED[case][1]]]


@pytest.mark.parametrize(
    ("masks", "shape", "rows"),
    [
        ({"begin_mask": 2, "end_mask": 2}, (4, None), slice(1, 3)),
        ({"begin_mask": 2, "end_mask": 2, "shrink_axis_mask": 1}, (4, None), 1),
        ({"begin_mask": 2, "end_mask": 3}, (4, None), slice(1, None)),
    ],
    ids=["two rows", "one row", "rows to the end"],
)
def test_an_open_axis_that_is_selected_whole_stays_open(
    masks: dict[str, int], shape: tuple[int | None, ...], rows: slice | int, tmp_path: Path
) -> None:
    myelin.from_package(with_open_size(_sliced([1, 7], [3, 9], **masks), shape)).save(tmp_path / "sliced.flow")
    program = onert.compile(onert.load(tmp_path / "sliced.flow"), num_threads=1)
    given = np.random.default_rng(4).random((4, 5)).astype("f4")
    (found,) = onert.Execution(program).run([given]).values()
    np.testing.assert_array_equal(found, given[rows])
