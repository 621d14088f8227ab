"""The flow file format: the meaning of its bytes, and byte-exact round trips."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest
from attrs import evolve

from flow.layouts import golden, laid_out
from onert.frontend.flow.file import (
    Blob,
    Connector,
    FlowFile,
    Function,
    FunctionFlag,
    Operation,
    Variable,
    VariableFlag,
    decode,
    encode,
)
from onert.ir import ModelError


def encoded(flow: FlowFile) -> bytes:
    return b"".join(encode(flow))


FLAGS = tuple(VariableFlag)
VERSION_5 = (
    *zip("ab", ("float32", "float16"), (FLAGS[0], FLAGS[1]), strict=True),
    *zip("cd", ("resource", "&resource"), (FLAGS[2], FLAGS[2]), strict=True),
    *zip("efghi", ("uint8", "uint16", "uint32", "uint64", "int8"), FLAGS[3:8], strict=True),
    *zip("jk", ("bool", "int64"), FLAGS[8:], strict=True),
    ("l", "void", 0x80040000 - (1 << 32)),
)
EXPECTED = {
    "version3": FlowFile(
        3,
        (
            Variable("f/x", "float32", (-1, 2), VariableFlag.REF),
            Variable("f/W", "int16", (2,), 0, ("W", "wéi"), (), np.array([1, -2], "<i2").tobytes()),
        ),
        (Operation("f/Mul", "Mul", ("f/x", "W"), (), (("task", "2"),)),),
        (Function("f", ("f/Mul",)),),
        (Connector("c", ("f/x", "f/W")),),
    ),
    "version4": FlowFile(
        4,
        (Variable("s", "float64", data=np.array([1.0], "<f8").tobytes()),),
        functions=(Function(""),),
        blobs=(Blob("words", "dict", (("delimiter", "\n"), ("oov", "")), b"a\0b"), Blob("empty")),
    ),
    "version5": FlowFile(
        5,
        tuple(
            Variable(name, type_, (), int(flags), data={"e": b"\xff", "j": b"\1"}.get(name, b""))
            for name, type_, flags in VERSION_5
        ),
        (Operation("op", "Noop", flags=1),),
        (Function("t", (), FunctionFlag.TRAINING), Function("g", ("op",), FunctionFlag.BACKPROP)),
        (Connector("cnx", ("a",), 7),),
        (Blob("blob", "t", (), b"\0", 9),),
        flags=1,
    ),
    "version6": FlowFile(
        6,
        (
            Variable(
                "f/x",
                "float32",
                (1, 4),
                VariableFlag.IN | VariableFlag.OUT,
                ("x",),
                (("gradient", "gradients/f/x"), ("keep", "0"), ("keep", "1")),
            ),
            Variable("f/y:0", "float", (0, -1)),
        ),
        (Operation("f/y", "Identity", ("x",), ("f/y:0",)),),
        (Function("f", ("f/y",)),),
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_golden_file_decodes_to_the_expected_records(name: str) -> None:
    assert decode(golden(name)) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_records_encode_to_the_bytes_of_the_golden_file(name: str) -> None:
    assert encoded(EXPECTED[name]) == golden(name)
    assert encoded(decode(golden(name))) == golden(name)


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_an_empty_flow_is_a_header_and_a_count_for_each_section(version: int) -> None:
    counts = {3: 4, 4: 5, 5: 6, 6: 6}[version]  # including the flags
    raw = b"flow" + struct.pack("<i", version) + bytes(4 * counts)
    assert decode(raw) == FlowFile(version)
    assert encoded(FlowFile(version)) == raw


def test_records_have_their_byte_offsets() -> None:
    flow = decode(golden("version6"))
    assert flow.variables[0].offset == 16
    raw = golden("version6")
    assert raw[flow.operations[0].offset :].startswith(laid_out('00000000 03000000 "f/y"'))


def test_bytes_after_the_last_record_are_preserved() -> None:
    raw = golden("version4") + b"more"
    assert bytes(decode(raw).rest) == b"more"
    assert encoded(decode(raw)) == raw


def test_data_is_not_copied() -> None:
    raw = bytearray(golden("version4"))
    (variable,) = decode(memoryview(raw)).variables
    raw[raw.index(b"\xf0\x3f")] = 0
    assert bytes(variable.data)[-2:] == b"\0\x3f"


def test_the_last_of_several_attributes_of_one_name_wins() -> None:
    variable = decode(golden("version6")).variables[0]
    assert variable.attribute("keep") == "1"
    assert variable.attribute("none") is None


@pytest.mark.parametrize(
    ("variable", "reference", "element"),
    [
        (Variable("x", "float32"), False, "float32"),
        (Variable("x", "float32", flags=VariableFlag.REF), True, "float32"),
        (Variable("x", "&float32"), True, "float32"),
    ],
    ids=["no", "by flag", "by type"],
)
def test_a_variable_is_a_reference_by_its_flag_or_its_type(variable: Variable, reference: bool, element: str) -> None:
    assert (variable.is_reference, variable.element_type) == (reference, element)


@pytest.mark.parametrize("version", [3, 4])
def test_references_survive_a_change_of_version(version: int) -> None:
    flow = FlowFile(version, (Variable("x", "resource", flags=VariableFlag.REF),))
    assert decode(encoded(flow)) == flow
    assert decode(encoded(evolve(decode(encoded(flow)), version=6))) == evolve(flow, version=6)


BARE = laid_out('"flow" 06000000 00000000')
WRONG: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", r"byte 0: the magic number has 4 bytes, but 0 follow"),
    "another mark": (b"Flow" + bytes(32), r"byte 0: begins with b'Flow', expected b'flow'"),
    "version 2": (laid_out('"flow" 02000000'), r"byte 4: the version is 2, expected 3 to 6"),
    "version 7": (laid_out('"flow" 07000000'), r"byte 4: the version is 7, expected 3 to 6"),
    "no counts": (BARE, r"byte 12: the number of variables has 4 bytes, but 0 follow"),
    "a negative count": (BARE + laid_out("ffffffff"), r"byte 12: the number of variables is -1, but 0 bytes follow"),
    "more than there is room for": (
        BARE + laid_out("02000000") + bytes(24),
        r"byte 12: the number of variables is 2, but 24 bytes follow",
    ),
    "a long name": (
        BARE + laid_out('01000000 00000000 ffff0000 "x"') + bytes(24),
        r"byte 20: the name of variable 0 has 65535 bytes, but 25 follow",
    ),
    "a name that is not UTF-8": (
        BARE + laid_out("01000000 00000000 02000000 61c3") + bytes(24),
        r"byte 25: the name of variable 0 is not UTF-8",
    ),
    "a negative size": (
        BARE + laid_out('01000000 00000000 01000000 "x" 00000000 00000000 01000000 feffffff') + bytes(24),
        r"byte 37: dimension 0 of variable 0 'x' is -2, expected at least -1",
    ),
    "data beyond the end": (
        BARE + laid_out('01000000 00000000 01000000 "x" 00000000 00000000 00000000 00000000 ffffffffffffffff'),
        r"byte 41: the data of variable 0 'x' has 18446744073709551615 bytes, but 0 follow",
    ),
    "an alias cut off": (
        BARE + laid_out('01000000 00000000 01000000 "x" 01000000 08000000') + bytes(4),
        r"byte 29: alias 0 of variable 0 'x' has 8 bytes, but 4 follow",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_malformed_file_is_rejected_with_the_byte_offset(case: str) -> None:
    raw, sentence = WRONG[case]
    with pytest.raises(ModelError, match=sentence):
        decode(raw)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_truncated_file_is_rejected(name: str) -> None:
    raw = golden(name)
    for length in range(len(raw)):
        with pytest.raises(ModelError, match=r"^byte \d+: "):
            decode(raw[:length])


X = Variable("x", "float32")
UNWRITABLE: dict[str, tuple[Callable[[], FlowFile], str]] = {
    "version 2": (lambda: FlowFile(2), r"flow files of version 2 cannot be written, expected 3 to 6"),
    "blobs": (lambda: FlowFile(3, blobs=(Blob("b"),)), r"version 3 cannot represent blob 'b'"),
    "learnable": (
        lambda: FlowFile(4, (evolve(X, flags=VariableFlag.LEARNABLE | VariableFlag.IN),)),
        r"version 4 cannot represent the flags 0x8 of variable 'x'",
    ),
    "training": (
        lambda: FlowFile(4, functions=(Function("f", flags=1),)),
        r"represent the flags 0x1 of function 'f'",
    ),
    "flow flags": (lambda: FlowFile(4, flags=2), r"cannot represent the flags 0x2 of the flow"),
    "attributes": (
        lambda: FlowFile(5, (evolve(X, attributes=(("a", "b"),)),)),
        r"version 5 cannot represent the attributes of variable 'x'",
    ),
    "a size": (
        lambda: FlowFile(6, (evolve(X, shape=(1 << 31,)),)),
        r"of variable 'x': 2147483648 does not fit",
    ),
    "a surrogate": (lambda: FlowFile(6, (evolve(X, name="\ud800"),)), r"cannot be written as UTF-8"),
}


@pytest.mark.parametrize("case", UNWRITABLE)
def test_encoding_fails_if_the_version_cannot_express_a_field(case: str) -> None:
    make, sentence = UNWRITABLE[case]
    with pytest.raises(ModelError, match=sentence):
        encode(make())


def test_input_and_output_flags_are_dropped_if_the_version_has_none() -> None:
    flow = FlowFile(4, (evolve(X, flags=VariableFlag.IN | VariableFlag.OUT),))
    assert decode(encoded(flow)) == FlowFile(4, (X,))
