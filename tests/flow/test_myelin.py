"""Networks, cells and instances: the programs of Myelin's guide run with only the import changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onert.flow as myelin
from flow.compiling import compiled
from onert.flow.errors import FormatError, KeyRangeError, UnknownTensorError
from onert.ir import Array, CompileError, ExecutionError, ModelError, OnertError

RNG = np.random.default_rng(7)


def test_the_first_program_of_myelin_s_guide_runs() -> None:
    flow = myelin.Flow()
    f = myelin.Builder(flow, "f")
    W = f.array("W", RNG.random((64, 256)).astype(np.float32))  # noqa: N806
    b = f.array("b", RNG.random(256).astype(np.float32))
    x = f.var("x", myelin.DT_FLOAT, [1, 64])
    y = f.softmax(f.relu(f.add(f.matmul(x, W), b)), name="y")
    compiler = myelin.Compiler()
    net = compiler.compile(flow)
    cell = net.cell("f")
    data = cell.instance()
    xdata = data[x]
    for i in range(64):
        xdata[0, i] = 5
    data.compute()
    ydata = data[y]
    hidden = np.maximum(np.full((1, 64), 5, "f4") @ W.data + b.data, 0)
    expected = np.exp(hidden - hidden.max())
    expected /= expected.sum()
    np.testing.assert_allclose(ydata, expected, rtol=0, atol=1e-6 * expected.max())
    assert np.asarray(ydata).argmax() == expected.argmax()


def doubled(shape: list[int] | None = None, dtype: str = "float32") -> tuple[myelin.Network, Any, Any]:
    """A network of one cell `f`, `y = x + x`."""
    flow = myelin.Flow()
    f = myelin.Builder(flow, "f")
    x = f.var("x", dtype, [2, 3] if shape is None else shape)
    y = f.add(x, x, name="y")
    x.aliases.append("alias")
    return compiled(flow), x, y


def test_a_tensor_is_a_writable_view_of_its_instance_s_memory() -> None:
    net, x, y = doubled()
    data = net.cell("f").instance()
    tensor = data[x]
    assert (tensor.name(), tensor.rank(), tensor.shape(), tensor.type(), len(tensor)) == (
        "f/x",
        2,
        [2, 3],
        "float32",
        6,
    )
    view = np.asarray(tensor)
    view[...] = np.arange(6).reshape(2, 3)
    assert [tensor[1, 2], tensor[-1, -1], tensor[5], tensor[3]] == [5, 5, 5, 3]
    raw = memoryview(tensor)
    assert (raw.shape, raw.readonly, raw.itemsize) == ((2, 3), False, 4)
    tensor[4] = 40
    tensor[0, -3] = 7
    data.compute()
    np.testing.assert_array_equal(data[y], [[14, 2, 4], [6, 80, 10]])


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16"],
)
def test_tensors_support_every_element_type_of_flows(dtype: str) -> None:
    net, x, y = doubled([3], dtype)
    data = net.cell("f").instance()
    data[x][1] = 9
    np.asarray(data[x])[2] = 3
    data.compute()
    assert (data[y].type(), list(data[y])) == (dtype, [0, 18, 6])


def test_tensors_are_looked_up_by_name_alias_number_or_variable() -> None:
    net, x, _ = doubled()
    cell = net.cell("f")
    data = cell.instance()
    number = cell.index("f/x")
    for key in ("f/x", b"f/x", "alias", x, number):
        data[key][0] += 1
    assert data["f/x"][0] == 5
    assert cell.index(("f/x", None, x)) == (number, None, number)
    assert data[None] is None
    assert [t.name() for t in data["f/x", number]] == ["f/x", "f/x"]
    assert "f/x" in cell
    assert "f/z" not in cell


def test_indexing_an_instance_returns_a_one_element_tensor_as_a_number() -> None:
    net, x, y = doubled([1, 1])
    data = net.cell("f").instance()
    data[x] = 4
    data.compute()
    assert data[y] == 8.0
    assert type(data[y]) is float
    assert data.tensor(y).shape() == [1, 1]
    np.testing.assert_array_equal(data.tensor(y), [[8]])


def test_a_tensor_is_set_from_an_array_of_its_shape_and_type() -> None:
    net, x, y = doubled()
    data = net.cell("f").instance()
    data[x] = np.ones((3, 2), "f4").T
    data.compute()
    np.testing.assert_array_equal(data[y], np.full((2, 3), 2))


def test_clear_zeroes_every_tensor() -> None:
    net, x, y = doubled()
    data = net.cell("f").instance()
    data[x] = np.ones((2, 3), "f4")
    data.compute()
    data.clear()
    assert list(data[x]) + list(data[y]) == [0.0] * 12


def test_printing_an_instance_lists_its_tensors() -> None:
    net, _, _ = doubled([2])
    assert str(net.cell("f").instance()) == "f/x = [0. 0.]\nf/y:0 = [0. 0.]"


Wrong = Callable[[myelin.Network, Any, Any], object]


def _set(value: Any) -> Wrong:
    def give(net: myelin.Network, data: Any, x: Any) -> None:
        data[x] = value

    return give


def _element(key: Any, value: Any = 1) -> Wrong:
    def give(net: myelin.Network, data: Any, x: Any) -> None:
        data[x][key] = value

    return give


WRONG: dict[str, tuple[Wrong, type[OnertError], type[Exception], str]] = {
    "an unknown name": (lambda n, d, x: d["z"], UnknownTensorError, ValueError, "no tensor 'z'"),
    "an unknown object": (lambda n, d, x: d[2.5], UnknownTensorError, ValueError, "no tensor '2.5'"),
    "a number out of range": (
        lambda n, d, x: d[len(n.parameters.names)],
        KeyRangeError,
        IndexError,
        r"no parameter \d+, expected 0 to",
    ),
    "an unknown cell": (lambda n, d, x: n.cell("g"), KeyRangeError, IndexError, "no cell 'g', expected one of f"),
    "a local tensor of the network": (lambda n, d, x: n[x], KeyRangeError, IndexError, "is not shared by cells"),
    "another type": (_set(np.ones((2, 3))), FormatError, TypeError, "elements of type float64, expected float32"),
    "another shape": (_set(np.ones((3, 2), "f4")), FormatError, TypeError, r"shape \[3, 2\], expected \[2, 3\]"),
    "one number": (_set(1.0), FormatError, TypeError, "has 6 elements, but is given one number"),
    "a row too many": (_element((2, 0)), KeyRangeError, IndexError, r"of shape \[2, 3\] has no element \[2, 0\]"),
    "too many indices": (_element((0, 0, 0)), KeyRangeError, IndexError, r"has no element \[0, 0, 0\]"),
    "beyond all in a row": (_element(6), KeyRangeError, IndexError, "has no element 6, expected 0 to 5"),
    "before all in a row": (_element(-1), KeyRangeError, IndexError, "has no element -1"),
    "no index": (_element("a"), KeyRangeError, IndexError, "has no element 'a', expected integers"),
    "no number": (_element((0, 0), "a"), FormatError, TypeError, "cannot hold 'a'"),
    "no reference": (
        lambda n, d, x: d.connect(x, n.cell("f").channel(x), 0),
        FormatError,
        TypeError,
        "'f/x' is not a reference",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_keys_and_values_raise_the_exception_types_of_myelin(case: str) -> None:
    wrong, kind, builtin, sentence = WRONG[case]
    net, x, _ = doubled()
    with pytest.raises(kind, match=sentence) as caught:
        wrong(net, net.cell("f").instance(), x)
    assert isinstance(caught.value, builtin)
    assert isinstance(caught.value, OnertError)


def test_instances_can_compute_concurrently_in_several_threads() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x", myelin.DT_FLOAT, [1, 32])
    weight = f.array("W", RNG.standard_normal((32, 32)).astype("f4"))
    y = f.tanh(f.matmul(x, weight), name="y")
    cell = compiled(flow).cell("f")
    found: dict[int, Array] = {}

    def work(number: int) -> None:
        data = cell.instance()
        for round_ in range(200):
            np.asarray(data[x])[...] = number + round_ / 100
            data.compute()
        found[number] = np.array(data[y])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, result in found.items():
        given = np.full((1, 32), number + 1.99, "f4")
        np.testing.assert_allclose(result, np.tanh(given @ weight.data), rtol=1e-4, atol=1e-5)
    assert len(found) == 4


def counter() -> tuple[myelin.Flow, Any, Any, Any]:
    """A recurrent function `t = s · 0.5 + x` whose references s and t are linked by a connector."""
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x", myelin.DT_FLOAT, [1, 4])
    state = f.var("s", myelin.DT_FLOAT, [1, 4])
    state.ref = True
    after = f.add(f.mul(state, 0.5), x, name="t")
    after.ref = True
    f.cnx("state", [state, after])
    return flow, x, state, after


def test_references_can_be_connected_to_tensors_of_channels() -> None:
    flow, x, state, after = counter()
    cell = compiled(flow).cell("f")
    data, channel = cell.instance(), cell.channel(state, 4)
    data[x] = np.ones((1, 4), "f4")
    for step in range(3):
        data.connect(state, channel, step)
        data.connect(after, channel, step + 1)
        data.compute()
    assert [channel[i][0, 0] for i in range(4)] == [0, 1, 1.5, 1.75]
    channel.resize(20)
    assert (len(channel), channel[3][0, 0], channel[19][0, 3], channel[-17][0, 0]) == (20, 1.75, 0, 1.75)
    assert data[after][0, 0] == 1.75
    channel[2][0, 0] = 8
    data.compute()
    assert channel[3][0, 0] == 5
    channel.resize(2)
    with pytest.raises(KeyRangeError, match="has no tensor 2, it has 2"):
        data.compute()
    channel.resize(4)
    assert [channel[i][0, 0] for i in range(4)] == [0, 1, 0, 0]


def test_a_computed_reference_is_stored_even_if_others_read_it() -> None:
    flow, x, state, after = counter()
    f = myelin.Builder(flow, "f")
    y = f.square(after, name="y")
    data = compiled(flow).cell("f").instance()
    memory = np.full((1, 4), 2, "f4")
    data[state] = data[after] = memory
    data[x] = np.ones((1, 4), "f4")
    data.compute()
    np.testing.assert_array_equal(memory, np.full((1, 4), 2))
    np.testing.assert_array_equal(data[y], np.full((1, 4), 4))
    assert "f/t:0" in compiled(flow).cell("f")
    data.compute()
    data[x] = np.zeros((1, 4), "f4")
    data.compute()
    np.testing.assert_array_equal(memory, np.ones((1, 4)))


def test_assigning_a_value_of_another_type_is_rejected() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    f.assign(f.parameter("W", shape=[2, 2]), f.var("x", shape=[2]))
    with pytest.raises(ModelError, match=r"assigns f32\[2\] to 'f/W' of f32\[2, 2\]"):
        compiled(flow)


def test_a_reference_can_be_set_to_an_array() -> None:
    flow, x, state, after = counter()
    data = compiled(flow).cell("f").instance()
    memory = np.full((1, 4), 8, "f4")
    data[state] = memory
    data[after] = memory
    data[x] = np.ones((1, 4), "f4")
    data.compute()
    data.compute()
    np.testing.assert_array_equal(memory, np.full((1, 4), 3.5))
    data.clear()
    assert data[state] is None


def test_unset_and_mismatched_references_are_errors() -> None:
    flow, _, state, after = counter()
    net = compiled(flow)
    data = net.cell("f").instance()
    assert data[state] is None
    with pytest.raises(ExecutionError, match="reference 'f/s' refers to nothing: connect it"):
        data.compute()
    with pytest.raises(FormatError, match=r"'f/s' is f32\[1, 4\], the channel has tensors of f32\[1, 4, 1\]"):
        data.connect(state, myelin.Channel("c", net.cell("f").channel(state).type.with_shape((1, 4, 1)), 1), 0)
    with pytest.raises(FormatError, match=r"'f/t:0' is computed, but is given a read-only array"):
        data[after] = np.frombuffer(bytes(16), "f4").reshape(1, 4)


def perceptron() -> tuple[myelin.Flow, Any, Any, Any]:
    """`y = x · W` with a learnable W, and a second function that assigns `W - 0.5 · g` to W."""
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x", myelin.DT_FLOAT, [1, 2])
    weight = f.parameter("W", shape=[2, 2], value=np.eye(2, dtype="f4"))
    y = f.matmul(x, weight, name="y")
    g = flow.define("update")
    gradient = g.var("g", myelin.DT_FLOAT, [2, 2])
    g.assign(weight, g.sub(weight, g.mul(gradient, 0.5)))
    return flow, x, weight, y


def test_learnable_variables_are_shared_and_writable() -> None:
    flow, x, weight, y = perceptron()
    net = compiled(flow)
    data, update = net.cell("f").instance(), net.cell("update").instance()
    data[x] = np.array([[2, 3]], "f4")
    data.compute()
    assert list(data[y]) == [2, 3]
    net[weight] = np.array([[0, 1], [1, 0]], "f4")
    data.compute()
    assert list(data[y]) == [3, 2]
    net["f/W"][0, 0] = 10
    data.compute()
    assert list(data[y]) == [23, 2]
    update["update/g"] = np.full((2, 2), 2, "f4")
    update.compute()
    np.testing.assert_array_equal(net[weight], [[9, 0], [0, -1]])
    data.compute()
    assert list(data[y]) == [18, -3]


def test_constants_are_shared_and_read_only() -> None:
    flow = myelin.Flow()
    f, g = flow.define("f"), flow.define("g")
    table = f.array("table", RNG.random((1000, 8)).astype("f4"))
    for builder in (f, g):
        index = builder.var("i", myelin.DT_INT, [1, 1])
        builder.gather(table, index, name="y")
    net = compiled(flow)
    first, second = (net.cell(name).program.main.subgraph for name in "fg")
    shared = [next(o.data for o in graph.operands if o.name == "f/table") for graph in (first, second)]
    assert shared[0].array is shared[1].array  # type: ignore[union-attr]
    data = net.cell("g").instance()
    data["g/i"] = 999
    data.compute()
    np.testing.assert_array_equal(data["g/y:0"], table.data[999:])
    np.testing.assert_array_equal(net["f/table"], table.data)
    with pytest.raises(FormatError, match="make the variable learnable to change it"):
        net["f/table"] = table.data
    with pytest.raises(FormatError, match="constant of compiled code"):
        net["f/table"][0, 0] = 1
    data["g/i"] = 1000
    with pytest.raises(ExecutionError, match="1000"):
        data.compute()


def test_unknown_operations_of_all_functions_are_reported_in_one_error() -> None:
    flow = myelin.Flow()
    for name in "fg":
        builder = flow.define(name)
        builder.op("Strange", [builder.op("Odder", [builder.var("x")])])
    with pytest.raises(CompileError, match=r"'f/Odder' Odder, .*'f/Strange' Strange, .*'g/Odder'.*'g/Strange' Strange"):
        compiled(flow)


def test_unknown_dimensions_are_1() -> None:
    net, _, y = doubled([-1, 3])
    data = net.cell("f").instance()
    assert data[y].shape() == [1, 3]
    flow = myelin.Flow()
    f = flow.define("f")
    f.square(f.exp(f.var("x", shape=[-1, 3])))
    assert [step.kernel for step in compiled(flow).cell("f").compiled.steps] == ["Calculate"]


def test_defining_a_name_twice_is_an_error() -> None:
    f = myelin.Flow().define("f")
    f.var("x")
    with pytest.raises(ModelError, match="'f/x' is defined already") as caught:
        f.var("x")
    assert isinstance(caught.value, IndexError)
