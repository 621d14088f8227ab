"""TNN's two files: golden ones laid out by hand, malformed ones, and mutants."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from frontend.tnn import tnn_writer as writer
from frontend.tnn.tnn_writer import Resource
from fuzz.mutate_tnn import NETWORK, RESOURCES

import onert
from onert.frontend.tnn import load
from onert.frontend.tnn.buffers import WeightRequest
from onert.frontend.tnn.structure import Layer
from onert.frontend.tnn.weights import read_weights
from onert.ir import Array, DType

PROTO = {
    1: '"1 2 1 4206624770 ,"\n"in 1 2 1 2 : other 1 1 1 1 ,"\n" in y ,"\n"y ,"\n" 1 ,"\n"Mul times 1 1 in y 1 ,"\n',
    2: '"1 2 1 4206624772 ,"\n"in 4 1 2 1 2 0 : other 1 3 3 ,"\n" in y ,"\n"y ,"\n" 1 ,"\n"Mul times 1 1 in y 1 ,"\n',
}
MODEL = {
    1: "0200bcfa 01000000 2a000000 03000000 4d756c 05000000 74696d6573 0200bcfa 00000000 08000000 00000040 00004040",
    2: "0400bcfa 01000000 2a000000 03000000 4d756c 05000000 74696d6573"
    "0400bcfa 00000000 08000000 04000000 01000000 02000000 01000000 01000000 00000040 00004040",
}
"""The same product by 2 and 3, one factor for each channel."""


def run(path: Path, *inputs: Array) -> list[Array]:
    program = onert.compile(onert.load(path), backends=("reference",))
    return list(onert.Execution(program).run(list(inputs)).values())


@pytest.mark.parametrize("version", [1, 2])
def test_golden_files_are_read(version: int, tmp_path: Path) -> None:
    (tmp_path / "a.tnnmodel").write_bytes(bytes.fromhex(MODEL[version]))
    (tmp_path / "a.tnnproto").write_text(PROTO[version])
    package = onert.load(tmp_path / "a.tnnproto")
    graph = package.model.primary
    assert [graph.operands[i].name for i in (*graph.inputs, *graph.outputs)] == ["in", "other", "y"]
    assert graph.operands[graph.inputs[1]].type.dtype is (DType.INT32 if version == 2 else DType.FLOAT32)
    other = np.zeros((3,), np.int32) if version == 2 else np.zeros((1, 1, 1, 1), np.float32)
    (y,) = run(tmp_path / "a.tnnproto", np.array([[[[1, 10]], [[1, 10]]]], np.float32), other)
    assert y.tolist() == [[[[2, 20]], [[3, 30]]]]


@pytest.mark.parametrize("version", [1, 2])
def test_the_tests_writer_reproduces_the_golden_file(version: int) -> None:
    factors = np.array([2, 3], np.float32).reshape(1, 2, 1, 1)
    assert writer.model([Resource("Mul", "times", [factors])], version=version) == bytes.fromhex(MODEL[version])


def test_old_files_have_neither_a_magic_number_nor_type_names() -> None:
    content = bytes.fromhex(MODEL[1])[4:].replace(struct.pack("<i", 3) + b"Mul", b"")
    read = read_weights(memoryview(content))
    found = read.buffer(Layer(0, "Mul", "times", (), (), ()), WeightRequest("weight", (1, 2, 1, 1)))
    assert found is not None
    assert found.array().tolist() == [2, 3]


PARTS: dict[str, tuple[list[Array | int | str], dict[str, Array]]] = {
    "Convolution": (
        ["c", 1, writer.numbers(1, 2, 3, 1, 1), writer.numbers(2, 2)],
        {"weight": writer.numbers(1, 2, 3, 1, 1), "bias": writer.numbers(2, 2)},
    ),
    "QuantizedConvolution": (
        ["c", 0, np.ones((2, 1, 1, 1), np.int8), np.zeros(2, np.int8), np.ones(2, np.float32)],
        {"weight": np.ones((2, 1, 1, 1), np.int8), "zero point": np.zeros(2, np.int8), "scale": np.ones(2, np.float32)},
    ),
    "InnerProduct": (
        ["c", np.ones((2, 2), np.float16), np.zeros(0, np.float32)],
        {"weight": np.ones((2, 2), np.float16)},
    ),
    "PReLU": (["c", writer.numbers(3, 4)], {"slope": writer.numbers(3, 4)}),
    "Scale": (["c", 0, writer.numbers(3, 4)], {"scale": writer.numbers(3, 4)}),
    "BatchNormCxx": (
        [writer.numbers(3, 4), writer.numbers(4, 4)],
        {"scale": writer.numbers(3, 4), "bias": writer.numbers(4, 4)},
    ),
    "BlobScale": ([np.ones(1, np.float32), np.zeros(0, np.int32)], {"scale": np.ones(1, np.float32)}),
    "Gather": ([0, 1, np.arange(3, dtype=np.int32)], {"indices": np.arange(3, dtype=np.int32)}),
    "MatMul": ([np.ones((2, 2), np.int8), np.ones(1, np.float32)], {"scale": np.ones(1, np.float32)}),
}


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("version", [1, 2])
def test_written_weights_are_read_back(kind: str, version: int) -> None:
    parts, expected = PARTS[kind]
    constant = writer.numbers(9, 2, 3)
    content = writer.model([Resource(kind, "c", parts), Resource("Mul", "d", [constant])], {"k": constant}, version)
    read = read_weights(memoryview(content))
    for name, array in expected.items():
        found = read.buffer(Layer(0, kind, "c", (), (), ()), WeightRequest(name, ()))
        assert found is not None
        assert found.shape == (array.shape if version == 2 else None)
        assert np.array_equal(found.array(), array.reshape(-1))
    last = read.constant("k", None)
    assert last is not None
    assert np.array_equal(last.array(), constant.reshape(-1))


_CHANGED = {
    "magic": ("4206624770", "4206624771", "expected the first line of a TNN structure"),
    "shape": ("in 1 2 1 2", "in 1 0 1 2", "has the shape [1, 0, 1, 2], expected sizes"),
    "word": ("times 1 1", "times 1 x", "layer 0 Mul 'times': the number of outputs is 'x', expected an integer"),
    "counts": ("times 1 1", "times 9 1", "layer 0 Mul 'times' has 9 inputs and 1 outputs, expected"),
    "negative": ("times 1 1", "times 1 -2147483648", "is -2147483648, expected -2147483647 to"),
    "too few blobs": ("Mul times 1 1 in", "Less times 3 1 in in in", "it has 3 inputs, expected 1 or 2"),
    "no blob": ("Mul times 1 1 in y", "Mul times 0 1 y", "it has 0 inputs, expected at least 1"),
    "blob": ("1 1 in y", "1 1 out y", "blob 'out' is neither produced by an earlier layer nor a constant"),
    "outputs": ('"y ,"', '"y z ,"', "no layer produces the outputs z"),
    "weight": ("times 1 1", "plus 1 1", "layer 0 Mul 'plus': it has a single input and no weight"),
}
"""What is replaced in a structure, by what, and the sentence."""
REFUSED = {
    **{name: (PROTO[1].replace(old, new), sentence) for name, (old, new, sentence) in _CHANGED.items()},
    "short": ('"1 0 1 4206624770 ,"\n"a 1 1 1 1 ,"', "the structure has 2 lines, expected more than 5"),
    "type": (PROTO[2].replace("1 3 3", "1 3 9"), "input 'other' has the element type 9"),
    "missing": (
        PROTO[1] + '"Magic a 1 1 y u ,"\n"Gru b 1 1 u v ,"\n"Magic c 1 1 v w ,"\n',
        "layer types that are not supported: Magic (layer 1 'a'), Gru (layer 2 'b')",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_malformed_structure_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    proto, sentence = REFUSED[name]
    (tmp_path / "a.tnnmodel").write_bytes(bytes.fromhex(MODEL[1]))
    (tmp_path / "a.tnnproto").write_text(proto)
    with pytest.raises(onert.ModelError) as caught:
        load(tmp_path / "a.tnnproto")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("at", range(4, len(bytes.fromhex(MODEL[2])), 7))
def test_a_truncated_weights_file_is_refused(at: int) -> None:
    with pytest.raises(onert.ModelError, match="expected"):
        read_weights(memoryview(bytes.fromhex(MODEL[2])[:at]))


def test_weights_are_found_beside_the_structure_or_drawn_at_random(tmp_path: Path) -> None:
    path = tmp_path / "a.tnnproto"
    path.write_text(PROTO[1])
    with pytest.raises(onert.ModelError, match=r"there is no a\.tnnmodel beside it; onert\.frontend\.tnn\.load\("):
        onert.load(path)
    with pytest.raises(onert.ModelError, match="which cannot be found from bytes"):
        onert.load(PROTO[1].encode())
    once, again, other = (load(path, random_weights=seed).model for seed in (0, 0, 1))
    assert once == again
    assert once != other


LONG = {
    "Pooling1D p 1 1 x y 0 2 2 1 -1 -1 -1 0": (1, 1, 1 << 30),
    "Pooling1D p 1 1 x y 1 2 2 1 -1 -1 -1 0": "would have 1073741824 elements, expected at most",
    "Histogram p 1 1 x y 4": (4,),
}


@pytest.mark.parametrize("layer", LONG)
def test_a_very_long_tensor_allocates_no_memory_before_it_runs(layer: str, tmp_path: Path) -> None:
    path, wanted = tmp_path / "a.tnnproto", LONG[layer]
    kind = 3 if "Histogram" in layer else 0
    path.write_text(writer.structure(f"x 3 1 1 2147483647 {kind}", "y", [layer]))
    if isinstance(wanted, str):
        with pytest.raises(onert.ModelError, match=wanted):
            load(path, random_weights=0)
    else:
        graph = load(path, random_weights=0).model.primary
        assert graph.operands[graph.outputs[0]].type.shape == wanted


def test_the_network_used_for_mutants_runs(tmp_path: Path) -> None:
    path = writer.write(tmp_path, writer.structure("x 4 1 4 6 6 0", "y", NETWORK), RESOURCES)
    (y,) = run(path, writer.numbers(8, 1, 4, 6, 6))
    assert y.shape == (1, 3)
    assert y.sum() == pytest.approx(1)
