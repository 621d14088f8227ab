"""Compiling flows: transformations, the choice of kernels, and the listings and code of compiled cells."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

import onert.flow as myelin
from flow.compiling import compiled
from onert.flow.files import flow_file
from onert.flow.graph import Graph
from onert.flow.library import Kernel, Library, fuse, remove, replace, standard_library
from onert.frontend.flow.emitter import Emitter, Node
from onert.frontend.flow.file import Operation
from onert.ir import Array, CompileError, ModelError, OnertError
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import UnaryKind
from onert_llvm.target.isa import runnable

RNG = np.random.default_rng(4)


def classifier() -> tuple[myelin.Flow, Array, Array]:
    """The example in Myelin's guide, with its weight and bias."""
    flow = myelin.Flow()
    f = myelin.Builder(flow, "f")
    weight, bias = (RNG.random(shape).astype("f4") / 16 for shape in ((64, 256), 256))
    x = f.var("x", myelin.DT_FLOAT, [1, 64])
    f.softmax(f.relu(f.add(f.matmul(x, f.array("W", weight)), f.array("b", bias))), name="y")
    return flow, weight, bias


def steps(cell: myelin.Cell) -> list[str]:
    """The kernels of a cell's steps."""
    return [step.kernel for step in cell.compiled.steps]


def test_the_guide_s_example_compiles_to_its_five_steps() -> None:
    cell = compiled(classifier()[0]).cell("f")
    lines = str(cell).splitlines()
    assert lines[0] == f"cell f {{  // size {cell.compiled.layout.size}"
    assert lines[-7:] == [
        "",
        "  f/Relu:0 = MatMulAddRelu[Flt llvm](f/x, f/W, f/b)",
        "  f/Max:0 = MaxExpr[Flt llvm](f/Relu:0)",
        "  f/Exp:0, f/Sum:0 = Calculate[Flt llvm](f/Relu:0, f/Max:0) @0=Exp(Sub(%0,%1));@1=Sum(@0)",
        "  f/Reciprocal:0 = ReciprocalExpr[Flt llvm](f/Sum:0)",
        "  f/y:0 = MulExpr[Flt llvm](f/Exp:0, f/Reciprocal:0)",
        "}",
    ]
    assert "  input var f/x: float32[1x64]      // offset 0 size 256 alignment 64 row-major" in lines
    assert "  const f/W: float32[64x256]  // size 65536 alignment 64 row-major" in lines
    assert not any("f/Sub" in line or "f/MatMul:0" in line for line in lines)


def test_the_guide_s_example_computes_the_same_with_and_without_transformations() -> None:
    flow, weight, bias = classifier()
    x = RNG.random((1, 64)).astype("f4")
    bare = standard_library()
    bare.transformers.clear()
    hidden = np.maximum(x @ weight + bias, 0)
    expected = np.exp(hidden - hidden.max())
    expected /= expected.sum()
    for library in (standard_library(), bare):
        data = compiled(flow, library).cell("f").instance()
        data["f/x"] = x
        data.compute()
        np.testing.assert_allclose(data["f/y:0"], expected, rtol=0, atol=1e-6 * expected.max())
    assert steps(compiled(flow, bare).cell("f")) == ["MatMul", "AddExpr", "SoftMax"]


def test_a_listing_shows_offsets_and_which_tensors_share_memory() -> None:
    cell = compiled(classifier()[0]).cell("f")
    found = re.findall(r"(union )?(\S+): float32\S*\s+// offset (\d+) size (\d+)", str(cell))
    offsets = [int(offset) for _, _, offset, _ in found]
    assert offsets == sorted(offsets)
    for (_, _, before, _), (union, _, offset, _) in pairwise(found):
        assert bool(union) == (before == offset)
    assert max(int(offset) + int(size) for _, _, offset, size in found) <= cell.compiled.layout.size


def test_compiling_does_not_change_the_flow() -> None:
    flow, _, _ = classifier()
    before = flow_file(flow)
    compiled(flow)
    assert flow_file(flow) == before


Build = Callable[[myelin.Builder, myelin.Variable], object]
RECIPES: dict[str, tuple[Build, Sequence[str]]] = {
    "a chain": (lambda f, x: f.exp(f.neg(f.add(x, 1))), ["@0=Exp(Neg(Add(%0,#1)))"]),
    "a value that is read twice": (lambda f, x: f.mul(f.exp(x), f.exp(x, name="again")), ["@0=Mul(Exp(%0),Exp(%0))"]),
    "a temporary": (lambda f, x: _squared(f, f.exp(x)), ["$0=Exp(%0);@0=Mul($0,$0)"]),
    "a result that is read elsewhere": (lambda f, x: _output_and_read(f, f.exp(x)), ["@0=Exp(%0);@1=Neg(@0)"]),
    "a reduction at the end": (lambda f, x: f.sum(f.square(x)), ["@0=Sum(Square(%0))"]),
    "what reads a reduction": (lambda f, x: f.sub(x, f.max(f.neg(x))), ["@0=Max(Neg(%0))", ""]),
    "two operands": (lambda f, x: f.maximum(f.sin(x), f.cos(x)), ["@0=Maximum(Sin(%0),Cos(%0))"]),
    "a row that broadcasts": (lambda f, x: f.tanh(f.add(x, f.const(np.ones(4, "f4")))), ["@0=Tanh(Add(%0,%1))"]),
    "another shape": (lambda f, x: f.exp(f.sum(x, axis=0)), ["", ""]),
    "another type": (lambda f, x: f.neg(f.cast(f.exp(x), "float64")), ["", "", ""]),
    "a comparison": (lambda f, x: f.select(f.less(x, 0), x), ["@0=Select(CmpLt(%0,#1),%0)"]),
    "what is not to be merged": (lambda f, x: _not_merged(f, f.exp(x)), ["", ""]),
    "a way round": (lambda f, x: f.add(f.exp(x), f.reshape(f.reshape(f.exp(x, name="e"), [12]), [3, 4])), None),  # type: ignore[dict-item]
}


def _squared(f: myelin.Builder, x: myelin.Variable) -> object:
    return f.mul(x, x)


def _output_and_read(f: myelin.Builder, x: myelin.Variable) -> object:
    x.output = True
    return f.neg(x)


def _not_merged(f: myelin.Builder, x: myelin.Variable) -> object:
    y = f.neg(x)
    assert y.producer is not None
    y.producer.add_attr("nomerge", 1)
    return y


@pytest.mark.parametrize("case", RECIPES)
def test_elementwise_operations_are_merged_into_equivalent_recipes(case: str) -> None:
    build, expected = RECIPES[case]
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x", myelin.DT_FLOAT, [3, 4])
    build(f, x)
    bare = standard_library()
    bare.transformers.clear()
    given = RNG.uniform(-2, 2, (3, 4)).astype("f4")
    results = []
    for library in (standard_library(), bare):
        cell = compiled(flow, library).cell("f")
        if library is not bare and expected is not None:
            assert [step.recipe for step in cell.compiled.steps] == expected
        data = cell.instance()
        data[x] = given
        data.compute()
        results.append({info.name: np.array(data.tensor(info.name)) for info in cell.program.outputs})
    assert results[0].keys() == results[1].keys()
    for name, result in results[0].items():
        np.testing.assert_array_equal(result, results[1][name])


FUSED: dict[str, tuple[Build, list[str]]] = {
    "a bias": (lambda f, x: f.add(_product(f, x), np.ones(4, "f4")), ["MatMulAdd"]),
    "a rectifier": (lambda f, x: f.relu(_product(f, x)), ["MatMulRelu"]),
    "a bias on the left": (lambda f, x: f.add(np.ones(4, "f4"), _product(f, x)), ["MatMulAdd"]),
    "a bias that makes it larger": (
        lambda f, x: f.add(_product(f, x), np.ones((2, 3, 4), "f4")),
        ["MatMul", "AddExpr"],
    ),
    "a product that is read twice": (lambda f, x: _twice(f, _product(f, x)), ["MatMul", "Calculate"]),
}


def _product(f: myelin.Builder, x: myelin.Variable) -> myelin.Variable:
    return f.matmul(x, np.eye(4, dtype="f4"))


def _twice(f: myelin.Builder, x: myelin.Variable) -> object:
    return f.add(f.relu(x), x)


@pytest.mark.parametrize("case", FUSED)
def test_bias_and_relu_are_fused_into_a_matrix_product(case: str) -> None:
    build, expected = FUSED[case]
    flow = myelin.Flow()
    f = flow.define("f")
    build(f, f.var("x", myelin.DT_FLOAT, [3, 4]))
    assert steps(compiled(flow).cell("f")) == expected


def swish_flow() -> tuple[myelin.Flow, myelin.Variable]:
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x", myelin.DT_FLOAT, [2, 8])
    return flow, f.neg(f.mul(x, f.sigmoid(x)), name="y")


def test_user_defined_transformations_and_kernels_are_used() -> None:
    flow, y = swish_flow()
    library = standard_library()

    @library.transformer
    def find_swish(graph: Graph) -> bool:
        """x · sigmoid(x) --> Swish(x)"""
        for product in list(graph.ops.values()):
            sigmoid = product.inputs[-1].producer if product.type == "Mul" else None
            if sigmoid is not None and sigmoid.type == "Sigmoid" and sigmoid.inputs == product.inputs[:1]:
                product.inputs[0].consumers.remove(product)
                del product.inputs[0]
                fuse(graph, sigmoid, product, "Swish")
                return True
        return False

    @library.kernel("Swish", name="MySwish")
    def swish(e: Emitter, node: Node) -> int:
        return e.binary(BinaryKind.MUL, node.input(0), e.unary(UnaryKind.LOGISTIC, node.input(0)))

    cell = compiled(flow, library).cell("f")
    assert steps(cell) == ["MySwish", "NegExpr"]
    data = cell.instance()
    x = RNG.standard_normal((2, 8)).astype("f4")
    data["f/x"] = x
    data.compute()
    np.testing.assert_allclose(data[y], -x / (1 + np.exp(-x)), rtol=1e-5)


def test_a_function_on_arrays_is_used_as_a_kernel_for_the_operations_it_supports() -> None:
    flow, y = swish_flow()
    library = Library()
    for kernels in standard_library().kernels.values():
        library.register(kernels[0])

    @library.function("Neg", supports=lambda operation: operation.name == "f/y")
    def twice(x: Array) -> Array:
        return 2 * x

    cell = compiled(flow, library).cell("f")
    assert steps(cell)[-1] == "twice"
    data = cell.instance()
    data["f/x"] = np.ones((2, 8), "f4")
    data.compute()
    np.testing.assert_allclose(data[y], np.full((2, 8), 2 / (1 + np.exp(-1))), rtol=1e-5)


def test_the_kernel_registered_last_takes_precedence() -> None:
    library = standard_library()
    first = library.found(Operation("f/Neg", "Neg"))
    library.register(Kernel("Other", "Neg", lambda e, node: node.input(0), lambda operation: operation.name == "f/Neg"))
    assert first is not None
    assert [library.found(Operation(name, "Neg")).name for name in ("f/Neg", "g/Neg")] == ["Other", "NegExpr"]  # type: ignore[union-attr]
    assert library.found(Operation("f/x", "Unheard")) is None


def test_transformations_that_never_terminate_are_an_error() -> None:
    library = standard_library()
    library.transformer(lambda flow: True)
    with pytest.raises(CompileError, match="the transformations still change the flow after 1000 rounds"):
        compiled(swish_flow()[0], library)


def test_operations_are_removed_and_replaced() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x")
    y = f.neg(f.identity(x))
    identity = flow.ops["f/Identity"]
    replace(flow, identity.outputs[0], x)
    remove(flow, identity)
    assert [o.type for o in flow.func("f").ops] == ["Neg"]
    assert x.consumers == [y.producer]
    assert str(flow) == "func f {\n  var f/x : float32\n  f/Neg:0 = Neg(f/x)\n}"


def test_a_cell_shows_its_llvm_ir_and_assembly() -> None:
    cell = compiled(classifier()[0]).cell("f")
    symbols = re.findall(r'^define \w* ?void @"(\w+)"', cell.llvm_ir(), re.MULTILINE)
    assert len(symbols) >= 4
    assert all(f"{symbol}:" in cell.assembly() for symbol in symbols)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="registers of another processor")
@pytest.mark.parametrize(("target", "wide"), [("x86-64", set()), ("x86-64-v3", {"ymm"}), ("x86-64-v4", {"ymm", "zmm"})])
def test_code_uses_only_the_registers_of_the_requested_target(target: str, wide: set[str]) -> None:
    try:
        net = myelin.Compiler(target=target, num_threads=1).compile(classifier()[0])
    except OnertError as error:
        pytest.skip(str(error))
    assert set(re.findall(r"%([yz]mm)\d", net.cell("f").assembly())) <= wide
    if wide:
        assert "%ymm" in net.cell("f").assembly() or "%zmm" in net.cell("f").assembly()
    data = net.cell("f").instance()
    data["f/x"] = RNG.random((1, 64)).astype("f4")
    if target in {isa.name for isa in runnable()}:
        data.compute()
        assert abs(np.asarray(data["f/y:0"]).sum() - 1) < 1e-5


def test_results_keep_their_names_when_their_operations_are_merged() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x", shape=[2])
    middle = f.exp(x, name="middle")
    middle.output = True
    f.square(middle, name="last")
    data = compiled(flow).cell("f").instance()
    data[x] = np.array([0, 1], "f4")
    data.compute()
    np.testing.assert_allclose(data["f/middle"], np.exp([0, 1]), rtol=1e-6)
    np.testing.assert_allclose(data["f/last"], np.exp([0, 2]), rtol=1e-6)


def test_merging_creates_no_cycle_through_readers_of_a_merged_result() -> None:
    """An LSTM cell whose input gate reads the old state and whose output gate reads the new one."""
    gates = {"i": "xhc", "g": "xh", "o": "xhn"}
    weights = {g + part: RNG.standard_normal((4, 4)).astype("f4") for g, parts in gates.items() for part in parts}
    flow = myelin.Flow()
    f = flow.define("f")
    parts = {name: f.var(name, shape=[1, 4]) for name in "xhc"}
    bias = f.array("b", np.ones(4, "f4"))

    def gate(name: str) -> myelin.Variable:
        first, *more = (f.matmul(parts[part], f.array(name + part, weights[name + part])) for part in gates[name])
        for product in more:
            first = f.add(first, product)
        return f.add(first, bias)

    i = f.sigmoid(gate("i"))
    kept = f.mul(f.sub(1.0, i), parts["c"])
    parts["n"] = f.add(kept, f.mul(i, f.tanh(gate("g"))), name="new")
    parts["n"].output = True
    f.mul(f.sigmoid(gate("o")), f.tanh(parts["n"]), name="y")
    data = compiled(flow).cell("f").instance()
    values = {name: RNG.standard_normal((1, 4)).astype("f4") for name in "xhc"}
    for name, array in values.items():
        data[f"f/{name}"] = array
    data.compute()

    def summed(name: str) -> Array:
        return sum((values[part] @ weights[name + part] for part in gates[name]), np.ones((1, 4), "f4"))

    opened = 1 / (1 + np.exp(-summed("i")))
    values["n"] = (1 - opened) * values["c"] + opened * np.tanh(summed("g"))
    np.testing.assert_allclose(data["f/new"], values["n"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(data["f/y"], np.tanh(values["n"]) / (1 + np.exp(-summed("o"))), rtol=1e-4, atol=1e-5)


def test_text_after_the_last_expression_of_a_recipe_is_an_error() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    result = f.op("Calculate", [f.var("x", shape=[2])])
    assert result.producer is not None
    result.producer.add_attr("expr", "@0=Neg(%0)%0")
    with pytest.raises(ModelError, match="the recipe has trailing text: '%0'"):
        compiled(flow)


def test_independent_operations_that_read_the_same_tensor_are_merged() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    x, y, z = (f.var(name, shape=[4]) for name in "xyz")
    f.mul(x, y, name="one")
    f.sub(z, x, name="two")
    through = f.sum(f.exp(x, name="three"), 0, name="sum")
    f.add(f.reshape(f.broadcast(through, [2, 4]), [8]), 1.0, name="four")
    cell = compiled(flow).cell("f")
    merged = next(step for step in cell.compiled.steps if step.kernel == "Calculate")
    assert set(merged.outputs) >= {"f/one:0", "f/two:0"}
    data = cell.instance()
    given = {name: RNG.random(4).astype("f4") for name in "xyz"}
    for name, array in given.items():
        data[f"f/{name}"] = array
    data.compute()
    np.testing.assert_allclose(data["f/one"], given["x"] * given["y"], rtol=1e-6)
    np.testing.assert_allclose(data["f/two"], given["z"] - given["x"], rtol=1e-6)
    np.testing.assert_allclose(data["f/four"], np.full(8, np.exp(given["x"]).sum() + 1), rtol=1e-5)


@pytest.mark.parametrize(
    "optype", ["SoftMax", "Relu", "Sum", "Add", "MatMul", "Scatter", "AssignAdd", "AssignAddScatter"]
)
def test_transformations_leave_malformed_operations_to_be_reported(optype: str) -> None:
    """With any number of operands and results, whatever reads the results."""
    for inputs, outputs in ((i, o) for i in range(4) for o in range(3)):
        flow = myelin.Flow()
        f = flow.define("f")
        w, given = f.parameter("w", shape=[2, 2]), [f.var(str(i), shape=[2, 2]) for i in range(3)]
        operation = f.rawop(optype)
        for variable in (w, *given)[:inputs]:
            operation.add_input(variable)
        for number in range(outputs):
            made = f.result(operation, "float32", [2, 2], number)
            f.relu(f.add(made, given[0]))
            f.rawop("AssignAdd").inputs += [w, made]
        found = error_of(flow)
        assert found is None or found.startswith(("operation '", "no meaning")), found


def error_of(flow: myelin.Flow) -> str | None:
    """The message of the error on compiling a flow, or None."""
    try:
        compiled(flow)
    except OnertError as error:
        return str(error)
    return None
