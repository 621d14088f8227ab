"""Building flows: names, records and topological order; saving and loading them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import onert
import onert.flow as myelin
from flow.layouts import golden, laid_out
from onert.flow.errors import DefinedError
from onert.flow.files import flow_file
from onert.frontend.flow.file import decode
from onert.ir import ModelError


def layer() -> myelin.Flow:
    """`y = relu(x · W + 0.5)`, with every kind of record that a flow can hold."""
    flow = myelin.Flow()
    f = myelin.Builder(flow, "f")
    x = f.var("x", myelin.DT_FLOAT, [-1, 2])
    x.input = True
    x.add_attr("gradient", "d_x")
    product = f.matmul(x, f.array("W", np.array([[1, 2, 3], [4, 5, 6]], "f4")))
    y = f.relu(f.add(product, 0.5), name="y")
    y.aliases.append("result")
    y.output = True
    f.cnx("ends", [x, y, x])
    blob = flow.blob("words")
    blob.type = "dict"
    blob.add_attr("sorted", True)
    blob.data = "a b"
    flow.func("f").backprop = True
    return flow


def test_names_are_prefixed_by_the_function_and_numbered_if_taken() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x")
    names = [f.neg(x), f.neg(x), f.neg(x, name="named"), f.add(x, 1), f.add(x, 2)]
    assert [v.name for v in names] == ["f/Neg:0", "f/Neg_1:0", "f/named:0", "f/Add:0", "f/Add_1:0"]
    assert [v.name for v in flow.vars.values() if v.data is not None] == ["f/const", "f/const_1"]
    assert f.const(3, name="three").name == "three"
    f.rename(x, "z")
    assert repr(x) == "f/z"
    assert flow.vars["f/z"] is x
    with pytest.raises(DefinedError, match="variable 'f/z' is defined already"):
        f.rename(names[0], "z")
    assert (f.rename(x, "z"), names[0].name) == (x, "f/Neg:0")
    assert f.opname("Neg") == "f/Neg_2"
    assert f.varname("z") == "f/z_1"


def test_looking_up_a_name_again_returns_the_same_record() -> None:
    flow = myelin.Flow()
    for get in (flow.func, flow.op, flow.cnx, flow.blob, flow.var):
        first = get("name")
        assert get("name") is first
        assert get(first) is first  # type: ignore[operator]
    x = flow.var("x", "int8", (2, 3))
    assert (x.type, x.shape, x.rank(), x.elements(), x.shape_defined()) == ("int8", [2, 3], 2, 6, True)
    with pytest.raises(ModelError, match="a function is named 3, expected a string"):
        flow.func(3)  # type: ignore[arg-type]


def test_a_variable_s_description_shows_its_type_and_flags() -> None:
    x = myelin.Flow().var("x", "float32", [1, -1])
    assert (x.typestr(), str(x), x.shape_defined()) == ("float32[1x?]", "var x : float32[1x?]", False)
    x.ref = x.output = x.learnable = x.unique = True
    assert (x.typestr(), str(x), x.flags) == ("&float32[1x?]", "output var x : &float32[1x?]", 2 + 4 + 8 + 16)
    x.output = False
    assert (x.output, x.flags) == (False, 28)
    x.add_attr("a", False)
    assert (x.attr("a"), x.attr("b")) == ("0", None)


def test_a_flow_is_printed_function_by_function() -> None:
    assert str(layer()) == "\n".join(
        [
            "func f {",
            "  input var f/x : float32[?x2]",
            "  const f/W : float32[2x3]",
            "  const f/const : float32",
            "  f/MatMul:0 = MatMul(f/x, f/W)",
            "  f/Add:0 = Add(f/MatMul:0, f/const)",
            "  f/y:0 = Relu(f/Add:0)",
            "}",
            "cnx f/ends = f/x, f/y:0",
            "blob words : dict",
        ]
    )


def test_inputs_and_outputs_are_found_with_and_without_constants() -> None:
    flow = layer()
    f = flow.func("f")
    assert [v.name for v in flow.inputs(f)] == ["f/x", "f/W", "f/const"]
    assert [v.name for v in flow.inputs(f, variable=False)] == ["f/W", "f/const"]
    assert [v.name for v in flow.inputs(const=False)] == ["f/x"]
    assert [v.name for v in flow.outputs(f)] == ["f/y:0"]


def test_the_order_is_topological_and_a_cycle_is_rejected() -> None:
    flow = layer()
    f = flow.func("f")
    f.ops.reverse()
    variables, operations = flow.order(f)
    assert [o.type for o in operations] == ["MatMul", "Add", "Relu"]
    assert {v.name for v in variables} == set(flow.vars)
    first = operations[0]
    first.add_input(flow.vars["f/y:0"])
    with pytest.raises(ModelError, match="function 'f' depend on their own outputs"):
        flow.order(f)


def test_prefixes_and_suffixes_of_names_are_replaced() -> None:
    flow = layer()
    flow.rename_prefix("f/", "g/")
    assert "g/x" in flow.vars
    assert "g/MatMul" in flow.ops
    flow.rename_suffix(":0", "")
    assert flow.vars["g/y"].name == "g/y"
    flow.var("other")
    with pytest.raises(ModelError, match="'other' would be the name of two variables"):
        flow.rename_suffix("g/y", "other")


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_a_loaded_flow_is_saved_byte_for_byte(version: int, tmp_path: Path) -> None:
    raw = golden(f"version{version}")
    if version == 3:  # operands are saved by name, but this file refers to one by an alias
        raw = raw.replace(laid_out('01000000 "W" 00000000'), laid_out('03000000 "f/W" 00000000'))
    if version == 6:  # only the last of two attributes of one name is kept
        raw = raw.replace(laid_out('03000000 08000000 "gradient"'), laid_out('02000000 08000000 "gradient"'))
        raw = raw.replace(laid_out('04000000 "keep" 01000000 "0"'), b"")
        raw = raw.replace(laid_out('01000000 01000000 "x" 01000000'), laid_out('01000000 03000000 "f/x" 01000000'))
    flow = myelin.Flow()
    flow.load(raw)
    path = tmp_path / "saved.flow"
    flow.save(path, version=version)
    assert path.read_bytes() == raw


def test_saving_and_loading_preserves_a_flow(tmp_path: Path) -> None:
    flow, loaded = layer(), myelin.Flow()
    path = tmp_path / "layer.flow"
    path.write_bytes(b"what was there before")
    flow.save(str(path))
    loaded.load(path)
    assert flow_file(loaded) == flow_file(flow)
    assert str(loaded) == str(flow)
    assert [each.name for each in tmp_path.iterdir()] == ["layer.flow"]


def test_a_flow_can_be_saved_to_an_open_file() -> None:
    class KeepsContent(io.BytesIO):
        def close(self) -> None:
            self.content = self.getvalue()
            super().close()

    file = KeepsContent()
    layer().save(file)
    assert file.closed
    assert decode(file.content) == flow_file(layer())


def test_a_saved_flow_runs_like_any_model(tmp_path: Path) -> None:
    path = tmp_path / "layer.flow"
    layer().save(path)
    x = np.array([[1, -1], [2, 3]], "f4")
    results = onert.Execution(onert.compile(onert.load(path), backends=("reference",))).run({"f/x": x})
    np.testing.assert_array_equal(results["f/y:0"], np.maximum(x @ np.array([[1, 2, 3], [4, 5, 6]]) + 0.5, 0))


def test_python_numbers_are_saved_in_the_variable_s_element_type(tmp_path: Path) -> None:
    flow = myelin.Flow()
    for dtype in ("int64", "float64", "bool"):
        flow.var(dtype, dtype).data = 1
    flow.save(tmp_path / "numbers.flow")
    found = decode((tmp_path / "numbers.flow").read_bytes())
    assert [bytes(v.data) for v in found.variables] == [np.array(1, v.type).tobytes() for v in found.variables]


def test_a_failed_save_leaves_the_file_unchanged(tmp_path: Path) -> None:
    flow = layer()
    path = tmp_path / "layer.flow"
    path.write_bytes(b"what was there before")
    with pytest.raises(ModelError, match="version 3 cannot represent the attributes of variable 'f/x'"):
        flow.save(path, version=3)
    flow.vars["f/W"].data = np.zeros((2, 3))
    with pytest.raises(ModelError, match="'f/W' is of type float32, its data of type float64"):
        flow.save(path)
    flow.vars["f/W"].data = np.zeros((2, 2), "f4")
    with pytest.raises(ModelError, match=r"'f/W' has shape \[2, 3\], its data has 4 elements"):
        flow.save(path)
    with pytest.raises(ModelError, match="cannot be written: No such file"):
        layer().save(tmp_path / "none" / "layer.flow")
    assert path.read_bytes() == b"what was there before"


def test_loading_adds_to_a_flow_and_rejects_names_it_already_has() -> None:
    flow = layer()
    with pytest.raises(ModelError, match="the flow already has 'f/x'"):
        flow.load(golden("version6"))
    with pytest.raises(ModelError, match=r"none.flow: cannot be read: No such file"):
        flow.load("none.flow")
    with pytest.raises(ModelError, match="the flow already has 'words'"):
        flow.load(golden("version4"))
    flow.load(golden("version5"))
    assert list(flow.funcs) == ["f", "t", "g"]
