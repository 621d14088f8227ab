"""Programs as data: encoded values are decoded again, and decoding executes nothing."""

from __future__ import annotations

import copy
import pickle
import struct
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from attrs import evolve, frozen
from shared_material import REPOSITORY

import onert
from onert.backend import HOST, Backend, HostMemory, Memory
from onert.backend.writers import WRITERS
from onert.compiler.program_cache import other_shapes as programs
from onert.compiler.program_cache import serialize as cached
from onert.compiler.program_cache.decoding import DecodeError, decode
from onert.compiler.program_cache.encoding import HEAD, EncodeError, encode
from onert.compiler.program_cache.records import CORE, Records
from onert.ir import OPS, Array, CompileError, Constant, DType, Operand, Quantization, Subgraph, TensorType
from onert.ir.ops.custom import Python
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"
ELSEWHERE = HostMemory()
ELSEWHERE.name = "elsewhere"


@frozen
class Point:
    """A class of values defined by a backend."""

    x: int
    y: float = 0.5
    _inner: Point | None = None


class Colour(Enum):
    """An enumeration defined by a backend."""

    RED = "red"
    GREEN = "green"


class Own(Backend):
    """A backend that lists classes and has its own memory."""

    api_version = 2
    name = "own"
    serializable = (Point, Colour)

    @property
    def memory(self) -> Memory:
        return ELSEWHERE


OWN = Records([Own()])


def again(value: Any, records: Records = OWN, parts: Sequence[object] = ()) -> Any:
    document, buffers = encode(value, records, {id(part): at for at, part in enumerate(parts)})
    return decode(memoryview(document), [memoryview(each).toreadonly() for each in buffers], records, parts)


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        same = a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()
        return a.dtype == b.dtype and a.shape == b.shape and same
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, frozenset):  # equal sets may print in different orders
        return isinstance(b, frozenset) and equal(sorted(a), sorted(b))
    return type(a) is type(b) and repr(a) == repr(b) and (a == b or a != a)  # NaN


DTYPES = [d for d in DType if not d.is_handle and d.bits >= 8]
VALUES: dict[str, Any] = {
    "nothing": None,
    "truths": (True, False, 1, 0, 1.0, 0.0, -0.0),
    "integers": (0, -1, 1 << 62, -(1 << 63), (1 << 63) - 1, 1 << 63, 1 << 200, -(1 << 64)),
    "floats": (0.1, float("inf"), -float("inf"), float("nan"), 5e-324, -0.0),
    "a run of integers": tuple(range(-50, 50)),
    "a run with a long one": (1, 1 << 70),
    "mixed": (1, 1.0, "1", b"1", True, None, (), ((),)),
    "texts": ("", "a", "ä€\U0001f600", "\n\0", "\ud800", "a" * 10000),
    "bytes": (b"", b"\0", bytes(range(256)), b"\0"),
    "dictionaries": ({}, {"b": 1, "a": {2: None}}, {(1, 2): 3.0}),
    "sets": (frozenset(), frozenset({"b", "a", "c"})),
    "element types": (np.dtype("float32"), np.dtype(ml_dtypes.bfloat16)),
    "members": (DType.INT4, BinaryKind.ADD, Colour.RED, Colour.GREEN),
    "operations": (Binary(BinaryKind.ADD), Binary(BinaryKind.SUB)),
    "own values": (Point(1), Point(2, -0.0, Point(3, 1))),
    "memories": (HOST, ELSEWHERE),
    "operands": (Operand(TensorType(DType.INT8, (1, None), Quantization((0.5, 2.0), (0, -128), 1)), "x"),),
}


@pytest.mark.parametrize("name", VALUES)
def test_encoded_values_are_decoded_again(name: str) -> None:
    assert equal(again(VALUES[name]), VALUES[name])
    assert equal(again((VALUES[name], VALUES[name])), (VALUES[name], VALUES[name]))


ARRAYS = [
    *(np.arange(6).astype(d.numpy).reshape(2, 3) for d in DTYPES),
    np.array(2.5, np.float32),
    np.zeros((0, 3), np.int8),
    np.arange(24, dtype=np.int32).reshape(2, 3, 4).transpose(2, 0, 1)[::2],
    np.array([[b"a", b""], [b"\0b", b"c" * 100]], object),
    np.array([("key", 1), None], object),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype} {a.shape}")
def test_arrays_are_decoded_as_read_only_views(array: Array) -> None:
    found, constant = again((array, Constant(array)))
    assert equal(found, array)
    assert constant == Constant(array)
    if array.dtype != object and array.size:
        assert not found.flags.writeable
        assert not found.flags.owndata


def test_numpy_scalars_are_decoded_as_python_numbers() -> None:
    assert equal(again((np.int64(3), np.uint8(4), np.bool_(True), np.float64(0.5))), (3, 4, True, 0.5))


def test_a_constant_of_one_element_may_be_a_numpy_scalar() -> None:
    assert equal(again(Constant(np.float32(2.5))).array, np.array(2.5, np.float32))  # type: ignore[arg-type]


def test_shared_parts_are_referenced_and_not_copied() -> None:
    constant, type_ = Constant(np.zeros(3)), TensorType(DType.FLOAT32, (3,))
    found = again((Operand(type_, "x", constant), constant, type_), parts=[constant, type_])
    assert found[0].data is found[1] is constant
    assert found[0].type is found[2] is type_


def test_equal_nodes_are_encoded_once() -> None:
    one, many = (encode(tuple(Point(n % 3) for n in range(count)), OWN)[0] for count in (3, 300))
    assert len(many) <= len(one) + 4 * 300


def test_the_same_value_gives_the_same_document() -> None:
    def value(text: str) -> Any:
        return {text: frozenset({"c", "b", "a"})}, (bytes(text, "ascii"), b"ab"), Point(int(text, 16))

    assert encode(value("ab"), OWN) == encode(value("".join(["a", "b"])), OWN)
    one, other = frozenset([0, 8]), frozenset([8, 0])  # they collide, so the first inserted comes first
    assert list(one) != list(other)
    assert encode(one, OWN) == encode(other, OWN)


@frozen
class Stranger:
    """A value of an unlisted class."""


class Pair(NamedTuple):
    """A subclass of tuple."""

    a: int


UNENCODABLE: dict[str, Any] = {
    "a function": len,
    "a class": Point,
    "a method": [].append,
    "an object": object(),
    "a list": [1],
    "a value of an unlisted class": Stranger(),
    "a member of an unlisted enumeration": Enum("Strange", "A").A,  # type: ignore[attr-defined]
    "a named tuple": Pair(1),
    "a user's operation": Python("Mine", len),
    "a set without order": frozenset({1, "a"}),
    "an array of records": np.zeros(2, [("a", "i4")]),
    "an array of the other byte order": np.zeros(2, ">f4"),
    "a float of another width": np.float32(1),
    "a field of another type": Point("x"),  # type: ignore[arg-type]
    "a memory of no backend": HostMemory(),
}


@pytest.mark.parametrize("name", UNENCODABLE)
def test_values_other_than_plain_data_are_not_encoded(name: str) -> None:
    with pytest.raises(EncodeError):
        encode((1, UNENCODABLE[name]), OWN)


def test_values_nested_too_deeply_are_not_encoded() -> None:
    value: Any = ()
    for _ in range(100_000):
        value = (value,)
    with pytest.raises(EncodeError, match="too deep"):
        encode(value, OWN)


def test_every_kind_of_operation_is_listed() -> None:
    records = Records()
    for kind in OPS.values():
        if kind.__module__.startswith("onert.ir.ops."):
            name = records.name(kind)
            assert name is not None
            assert Records().kind(name) is kind
    for kind in CORE:
        assert Records().kind(kind.__qualname__) is kind


NAMES = (
    "os.system",
    "builtins.eval",
    "custom.importlib",
    "elementwise.binary.np",
    "elementwise.binary.frozen",
    "elementwise.binary.Enum",
    "elementwise.binary.Op",
    "elementwise.binary.TensorType",
    "elementwise.binary.Kind",
    "binary.Binary",
    "elementwise.__init__.Binary",
    "__init__.Kinds",
    "..op.Op",
    "onert.ir.ops.elementwise.binary.Binary",
    "own:Point",
    "Point",
    "",
    "no such kind",
)


@pytest.mark.parametrize("name", NAMES)
def test_an_unlisted_name_selects_no_class(name: str) -> None:
    with pytest.raises(LookupError):
        Records().kind(name)


# ---- damage


class Document(NamedTuple):
    """The document of a program, and the arrays and classes that it refers to."""

    content: bytes
    buffers: list[memoryview]
    records: Records


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    """The document of a real program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ONERT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(programs, "WORTH_CACHING", 0.0)
        found: list[Document] = []

        def seen(content: memoryview, buffers: Sequence[memoryview], records: Records, *more: Any) -> Any:
            found.append(Document(bytes(content), list(buffers), records))
            return decode(content, buffers, records, *more)

        patch.setattr(cached, "decode", seen)
        for _ in range(2):
            onert.compile(onert.load(DIGITS), num_threads=1)
            WRITERS.finish()
        yield found[0]


def outcome(document: Document, content: bytes) -> Any:
    parts = [Constant(np.zeros(1))] * 100
    try:
        return decode(memoryview(content), document.buffers, document.records, parts)
    except DecodeError as error:
        return error


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_document_is_rejected_or_contains_only_listed_classes(document: Document, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rejected = 0
    for _ in range(250):
        content = bytearray(document.content)
        region = int(rng.choice([HEAD.size, 2000, len(content)]))
        for at in rng.integers(0, region, int(rng.integers(1, 4))):
            content[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))]))
        rejected += isinstance(outcome(document, bytes(content)), DecodeError)
    assert rejected > 100


def test_a_truncated_document_is_rejected(document: Document) -> None:
    whole = outcome(document, document.content)
    assert not isinstance(whole, DecodeError)
    for end in (*range(0, 400, 7), *range(400, len(document.content) - 8, 101)):
        assert isinstance(outcome(document, document.content[:end]), DecodeError)


def numbers(*values: int) -> Callable[[bytes], bytes]:
    """Replace the header's numbers."""
    return lambda content: HEAD.pack(*values) + content[HEAD.size :]


def renamed(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    assert len(old) == len(new)
    return lambda content: content.replace(old, new)


def test_an_entry_contains_a_program_and_no_trailing_bytes(document: Document) -> None:
    parts = cached.Parts([Constant(np.zeros(1))] * 100)
    program, kernels, *_ = outcome(document, document.content)
    payload = b"".join(cached.pack((program, kernels, None, None), document.records, cached.Parts(())))
    assert cached.unpack(memoryview(payload), document.records, parts)[0].inputs == program.inputs
    for wrong in (payload + bytes(64), payload[:-64], payload[:8], b""):
        with pytest.raises(DecodeError):
            cached.unpack(memoryview(wrong), document.records, parts)
    for value in ((1, 2, 3, 4), (program,), (program, kernels), program):
        other = b"".join(cached.pack(value, document.records, cached.Parts(())))
        with pytest.raises(DecodeError, match="does not contain a program"):
            cached.unpack(memoryview(other), document.records, parts)


CORRUPT = {
    "no groups": numbers(0, 0, 0, 0, 0),
    "more groups than bytes": numbers(1 << 60, 0, 0, 0, 0),
    "negative numbers": numbers(-1, -1, -1, -1, -1),
    "another class": renamed(b"Placement", b"ArenaPlan"),
    "an unknown class": renamed(b"Placement", b"os.system"),
    "an unknown member": renamed(b"INT8", b"INT9"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_a_corrupt_document_is_rejected(name: str, document: Document) -> None:
    content = CORRUPT[name](document.content)
    assert content != document.content
    assert isinstance(outcome(document, content), DecodeError)


CORRUPT_OPERATIONS = {
    "a module that is not ours": renamed(b"pool.Pool2D", b"ctypes.CDLL"),
    "a function of one of our modules": renamed(b"pool.Pooling", b"pool.require"),
    "values other than operations": lambda content: encode((1, 2), OWN)[0],
    "another value": lambda content: encode("operations", OWN)[0],
}
"""Ways to corrupt the document of a subgraph's operations, which is decoded on first use."""


@pytest.mark.parametrize("name", CORRUPT_OPERATIONS)
def test_corrupt_operations_of_a_program_are_rejected_on_first_use(name: str, document: Document) -> None:
    program, *_ = outcome(document, document.content)
    buffers = [
        memoryview(CORRUPT_OPERATIONS[name](bytes(each)) if _is_operations(each) else each) for each in document.buffers
    ]
    corrupt, *_ = decode(memoryview(document.content), buffers, document.records, [Constant(np.zeros(1))] * 100)
    assert corrupt.main.subgraph.operands == program.main.subgraph.operands
    assert not corrupt.main.subgraph.notable
    with pytest.raises(CompileError, match="in the cache cannot be read"):
        _ = corrupt.main.subgraph.operations
    assert program.main.subgraph.operations


def test_a_subgraph_with_undecoded_operations_equals_one_with_decoded_ones(document: Document) -> None:
    def cached() -> Subgraph:
        program, *_ = outcome(document, document.content)
        found: Subgraph = program.main.subgraph
        return found

    whole = cached()
    assert "operations" not in whole.__dict__
    assert pickle.loads(pickle.dumps(cached())) == copy.deepcopy(cached()) == evolve(cached()) == cached() == whole
    assert isinstance(whole.operations, tuple)
    assert whole.definitions.keys() >= set(whole.outputs)
    with pytest.raises(AttributeError, match="no attribute 'others'"):
        _ = whole.others  # type: ignore[attr-defined]


def _is_operations(buffer: memoryview) -> bool:
    return b"pool.Pool2D" in bytes(buffer)


def test_decoding_allocates_no_more_memory_than_the_document_has_bytes() -> None:
    group = struct.Struct("<3q")
    for kind, count, width in (("tuple", 1 << 40, 0), ("int", 1 << 40, 0), ("tuple", 1 << 31, 1 << 31)):
        names = kind.encode().ljust(8, b"\n")
        content = HEAD.pack(1, len(names), 0, 0, 0) + group.pack(0, count, width) + names
        with pytest.raises(DecodeError):
            decode(memoryview(content), [], OWN)
