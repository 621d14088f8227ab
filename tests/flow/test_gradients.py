"""Gradients: they match finite differences in float64 and have Myelin's names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import onert.flow as myelin
from flow.compiling import compiled, with_gradient
from flow.derivatives import DERIVATIVES, Derivative
from onert.flow.files import flow_file
from onert.flow.gradients import GRADIENTS, Gradients, Term, gradient
from onert.flow.library import standard_library
from onert.frontend.flow.file import OperationFlag, VariableFlag
from onert.frontend.flow.model import model_of
from onert.frontend.flow.table import TABLE
from onert.frontend.flow.table.tensorflow_ops import RULES as TENSORFLOW
from onert.ir import Array, CompileError, ExecutionError, ModelError

CHUNK = 14
STEP = 1e-6


CHUNKS = [
    pytest.param(DERIVATIVES[at : at + CHUNK], id=f"{DERIVATIVES[at]} to {DERIVATIVES[at : at + CHUNK][-1]}")
    for at in range(0, len(DERIVATIVES), CHUNK)
]


@pytest.mark.parametrize("derivatives", CHUNKS)
def test_gradients_match_finite_differences(derivatives: Sequence[Derivative]) -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    f.func.backprop = True
    arrays: dict[myelin.Variable, Array] = {}
    operators: dict[Derivative, tuple[list[myelin.Variable], tuple[myelin.Variable, ...]]] = {}
    for at, derivative in enumerate(derivatives):
        given = derivative.arrays()
        inputs = [f.var(f"x{at}_{i}", myelin.DT_DOUBLE, a.shape) for i, a in enumerate(given)]
        arrays.update(zip(inputs, given, strict=True))
        made = derivative.build(f, *inputs)
        operators[derivative] = inputs, made if isinstance(made, tuple) else (made,)
    net = compiled(flow)
    data, back = with_gradient(net)
    rng = np.random.default_rng(3)
    adjoints = {y: rng.standard_normal(y.shape) for _, ys in operators.values() for y in ys}

    def outputs(moved: dict[myelin.Variable, Array]) -> dict[Derivative, float]:
        """For each operator, the sum of its results weighted by their adjoints."""
        for variable, array in moved.items():
            np.asarray(data.tensor(variable))[...] = array
        data.compute()
        return {
            operator: sum(float((np.asarray(data.tensor(y)) * adjoints[y]).sum()) for y in ys)
            for operator, (_, ys) in operators.items()
        }

    outputs(arrays)
    if "gradients/f/primal" in net.parameters.numbers:
        back["gradients/f/primal"] = data
    for y, adjoint in adjoints.items():
        np.asarray(back.tensor(f"gradients/f/d_{y.name.removeprefix('f/')}"))[...] = adjoint
    back.compute()
    for position in range(3):
        chosen = {d: inputs[position] for d, (inputs, _) in operators.items() if position < len(inputs)}
        for element in range(max((v.elements() for v in chosen.values()), default=0)):
            sides = []
            for sign in (1, -1):
                moved = {d: arrays[v].copy() for d, v in chosen.items()}
                for array in moved.values():
                    if element < array.size:
                        array.reshape(-1)[element] += sign * STEP
                sides.append(outputs({**arrays, **{chosen[d]: array for d, array in moved.items()}}))
            for derivative, variable in chosen.items():
                if element < variable.elements():
                    slope = (sides[0][derivative] - sides[1][derivative]) / (2 * STEP)
                    name = f"gradients/f/d_{variable.name.removeprefix('f/')}"
                    found = np.asarray(back.tensor(name)).reshape(-1)[element]
                    tolerance = 0.2 if derivative.name == "cast" else 1e-4
                    assert found == pytest.approx(slope, rel=tolerance, abs=1e-5), f"{derivative}, element {element}"


def test_every_operation_has_a_gradient_and_every_gradient_is_tested() -> None:
    tried = set()
    for derivative in DERIVATIVES:
        flow = myelin.Flow()
        f = flow.define("f")
        derivative.build(f, *(f.var(f"x{i}", myelin.DT_DOUBLE, shape) for i, shape in enumerate(derivative.shapes)))
        tried |= {operation.type for operation in flow.ops.values()}
    with_results = {name for name, rule in GRADIENTS.items() if rule is not GRADIENTS["Sign"]}
    aliases = {"CastHalf", "Cast"}
    assert with_results - aliases <= tried
    made_by_the_compiler = {"Calculate", "MatMulAdd", "MatMulRelu", "MatMulAddRelu"}
    in_recipes_only = {name for name in TABLE if name not in GRADIENTS} - made_by_the_compiler - TENSORFLOW.keys()
    assert not {name for name in in_recipes_only if not name.startswith(("MulAdd", "MulSub", "Cmp", "Id"))}


def layer() -> tuple[myelin.Flow, myelin.Variable, myelin.Variable, myelin.Variable]:
    """`f`: y = relu(x · W), and `g`: y = sum(x * W), with a shared learnable W."""
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x", myelin.DT_FLOAT, [1, 2])
    weight = f.parameter("W", shape=[2, 2], value=np.array([[1, 2], [3, -4]], "f4"))
    y = f.relu(f.matmul(x, weight), name="y")
    g = flow.define("g")
    g.sum(g.mul(g.var("x", myelin.DT_FLOAT, [2, 2]), weight), name="y")
    f.func.backprop = True
    assert g.func is not None
    g.func.backprop = True
    return flow, x, weight, y


def test_adjoints_have_myelin_s_names_and_the_function_is_marked_for_training() -> None:
    flow, _, weight, y = layer()
    library = standard_library()
    assert flow.funcs["f"].backprop
    from_f = gradient(flow, flow.funcs["f"], library.gradients)
    from_g = gradient(flow, flow.funcs["g"], library.gradients)
    assert (from_f.name, from_g.name, from_f.training, from_f.backprop) == ("gradients/f", "gradients/g", True, False)
    names = {name for name in flow.vars if name.startswith("gradients/")}
    assert {f"gradients/f/{name}" for name in ("primal", "ref_x", "ref_y:0", "d_y:0", "d_x", "d_W")} <= names
    assert {"gradients/g/primal", "gradients/g/d_x", "gradients/g/d_y:0", "gradients/g/d_W"} <= names
    assert flow.vars["gradients/f/primal"].typestr() == "&resource"
    assert flow.vars["gradients/f/ref_x"].producer.attr("var") == "f/x"  # type: ignore[union-attr]
    assert (flow.vars["gradients/f/d_y:0"].input, flow.vars["gradients/f/d_x"].output, y.output) == (True, True, True)
    links = flow.cnxs["gradients/f/W"].links
    assert [v.name for v in links] == [weight.name, "gradients/f/d_W", "gradients/g/d_W"]
    with pytest.raises(ModelError, match="'f' has a gradient already, 'gradients/f'"):
        gradient(flow, flow.funcs["f"], library.gradients)


def test_adjoints_of_learnable_variables_accumulate_until_cleared() -> None:
    flow, x, _, _ = layer()
    data, back = with_gradient(compiled(flow))
    data[x] = np.array([[2, 1]], "f4")
    data.compute()

    def accumulate() -> list[list[float]]:
        back["gradients/f/primal"] = data
        back["gradients/f/d_y:0"] = np.array([[1, 10]], "f4")
        back.compute()
        found: list[list[float]] = np.array(back["gradients/f/d_W"]).tolist()
        return found

    assert accumulate() == [[2, 0], [1, 0]]
    np.testing.assert_array_equal(back["gradients/f/d_x"], [[1, 3]])
    assert accumulate() == [[4, 0], [2, 0]]
    assert back["gradients/f/primal"] is data
    data[x] = np.array([[0, -1]], "f4")
    data.compute()
    assert accumulate() == [[4, 0], [2, -10]]
    back.clear()
    assert back["gradients/f/primal"] is None
    with pytest.raises(ExecutionError, match=r"'gradients/f/ref_\S+' refers to nothing: give 'gradients/f/primal' an"):
        back.compute()
    assert accumulate() == [[0, 0], [0, -10]]


def test_a_gradient_reads_the_instance_it_is_given() -> None:
    flow, x, _, _ = layer()
    net = compiled(flow)
    back = net.cell("gradients/f").instance()
    found = []
    for row in ([1, 0], [0, 1]):
        data = net.cell("f").instance()
        data[x] = np.array([row], "f4")
        data.compute()
        back["gradients/f/primal"] = data
        back["gradients/f/d_y:0"] = np.ones((1, 2), "f4")
        back.compute()
        found.append(np.array(back["gradients/f/d_W"]).tolist())
    assert found == [[[1, 1], [0, 0]], [[1, 1], [1, 0]]]
    with pytest.raises(TypeError, match="'gradients/f/primal' is given 3, expected an instance"):
        back["gradients/f/primal"] = 3
    with pytest.raises(IndexError, match="cell 'g' has no tensor 'f/"):
        back["gradients/f/primal"] = net.cell("g").instance()


def test_adjoints_propagate_back_through_the_steps_of_a_recurrent_function() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    f.func.backprop = True
    x, weight = f.var("x", myelin.DT_DOUBLE, [1, 3]), f.parameter("W", myelin.DT_DOUBLE, [3], [0.5, -0.7, 0.9])
    before = f.var("h_in", myelin.DT_DOUBLE, [1, 3])
    after = f.tanh(f.add(f.mul(before, weight), x), name="h_out")
    f.square(after, name="y")
    before.ref = after.ref = True
    f.cnx("h", [before, after])
    net = compiled(flow)
    cell, back = net.cell("f"), net.cell("gradients/f").instance()
    inputs = np.random.default_rng(2).standard_normal((4, 1, 3))

    def run(given: Array) -> tuple[float, list[myelin.Instance]]:
        states, steps, loss = cell.channel(before, 5), [], 0.0
        for step, row in enumerate(given):
            data = cell.instance()
            data[x] = row
            data.connect(before, states, step)
            data.connect(after, states, step + 1)
            data.compute()
            loss += float(np.sum(data["f/y"]))
            steps.append(data)
        return loss, steps

    _, steps = run(inputs)
    adjoints = net.cell("gradients/f").channel("gradients/f/d_h_in", 5)
    found = np.zeros_like(inputs)
    for step in reversed(range(4)):
        back["gradients/f/primal"] = steps[step]
        back["gradients/f/d_y:0"] = np.ones((1, 3))
        back.connect("gradients/f/d_h_out:0", adjoints, step + 1)
        back.connect("gradients/f/d_h_in", adjoints, step)
        back.compute()
        found[step] = back["gradients/f/d_x"]
    for place in np.ndindex(inputs.shape):
        above, below = inputs.copy(), inputs.copy()
        above[place] += STEP
        below[place] -= STEP
        assert found[place] == pytest.approx((run(above)[0] - run(below)[0]) / (2 * STEP), rel=1e-6)
    slopes = []
    for at in range(3):
        sides = []
        for sign in (1, -1):
            net[weight][at] += sign * STEP
            sides.append(run(inputs)[0])
            net[weight][at] -= sign * STEP
        slopes.append((sides[0] - sides[1]) / (2 * STEP))
    assert list(back["gradients/f/d_W"]) == pytest.approx(slopes, rel=1e-6)


def test_an_operation_without_a_gradient_is_an_error() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    f.func.backprop = True
    f.op("Strange", [f.op("Odder", [f.var("x", shape=[2])])])
    f.floor(f.var("z"))
    with pytest.raises(CompileError, match=r"there is no gradient for operation 'f/Strange' Strange$"):
        compiled(flow)


def test_a_library_accepts_user_defined_gradients() -> None:
    library = standard_library()

    @library.function("Cube")
    def cube(x: Array) -> Array:
        return x**3

    @library.gradient("Cube")
    def of_cube(g: Gradients, operation: myelin.Operation) -> list[Term]:
        (x,), (y,) = operation.inputs, operation.outputs
        return [lambda: g.mul(g.adjoint(y), g.mul(g.square(x), 3.0))]

    flow = myelin.Flow()
    f = flow.define("f")
    f.func.backprop = True
    x = f.var("x", shape=[2])
    f.op("Cube", [x], name="y")
    data, back = with_gradient(compiled(flow, library))
    data[x] = np.array([2, 3], "f4")
    data.compute()
    back["gradients/f/primal"] = data
    back["gradients/f/d_y:0"] = np.array([1, 10], "f4")
    back.compute()
    assert list(back["gradients/f/d_x"]) == [12, 270]


def test_variables_and_operations_marked_nogradient_have_no_gradient() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    f.func.backprop = True
    x, y, z = (f.var(name, shape=[2]) for name in "xyz")
    y.flags |= VariableFlag.NOGRADIENT
    stopped = f.square(z)
    assert stopped.producer is not None
    stopped.producer.flags |= OperationFlag.NOGRADIENT
    f.add(f.mul(x, y), stopped)
    cell = compiled(flow).cell("gradients/f")
    assert [f"gradients/f/d_{name}" in cell for name in "xyz"] == [True, False, False]


def test_a_gradient_is_a_signature_whose_references_are_inputs() -> None:
    flow = layer()[0]
    gradient(flow, flow.funcs["g"], GRADIENTS)
    model = model_of(flow_file(flow))
    signature = next(s for s in model.signatures if s.key == "gradients/g")
    assert [t.name for t in signature.inputs][:1] == ["gradients/g/d_y:0"]
    assert "gradients/g/ref_x" in [t.name for t in signature.inputs]
    assert "gradients/g/primal" not in [t.name for t in signature.inputs]
