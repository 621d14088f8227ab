"""Objects load without a linker, and damaged ones raise a clear error."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from onert.ir import BackendError
from onert_llvm.codegen.llvm_codegen import compile_text
from onert_llvm.irbuilder import F32, PTR, Kernel, Module, intrinsic
from onert_llvm.runtime.elf import parse
from onert_llvm.runtime.object_loader import load
from onert_llvm.target.isa import Isa, target

NATIVE = target("native")
CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _caller(isa: Isa, name: str, callee: str) -> bytes:
    """An object whose `name` calls the external `callee` with its argument, and uses a constant of its own."""
    module = Module(name, isa.triple)
    k = Kernel(module, name, {"x": PTR}, isa)
    k.call(callee, k.arg("x"))
    x = k.view(k.arg("x"), F32, 1)[0]
    x.store(x.load(4) * k.iota(F32, 4))
    k.finish()
    return compile_text(str(module), isa)


def _doubler(name: str) -> bytes:
    module = Module(name, NATIVE.triple)
    k = Kernel(module, name, {"x": PTR}, NATIVE)
    x = k.view(k.arg("x"), F32, 1)[0]
    x.store(x.load(4) + 1.5)
    k.finish()
    return compile_text(str(module), NATIVE)


def test_objects_call_one_another() -> None:
    x = np.ones(4, np.float32)
    image = load([_caller(NATIVE, "outer", "inner"), _doubler("inner")])
    CALL(image["outer"])(x.ctypes.data)
    assert x.tolist() == [0, 2.5, 5, 7.5]


def test_objects_call_functions_of_the_process() -> None:
    seen: list[int] = []
    callback = CALL(seen.append)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    x = np.ones(4, np.float32)
    image = load([_caller(NATIVE, "outer", "foreign")], {"foreign": address})
    CALL(image["outer"])(x.ctypes.data)
    assert seen == [x.ctypes.data]
    assert x.tolist() == [0, 1, 2, 3]


def test_missing_and_duplicate_symbols_are_rejected() -> None:
    with pytest.raises(BackendError, match="'inner', which nothing provides"):
        load([_caller(NATIVE, "outer", "inner")])
    with pytest.raises(BackendError, match="two objects export 'inner'"):
        load([_doubler("inner"), _doubler("inner")])
    with pytest.raises(BackendError, match="no symbol 'other'"):
        load([_doubler("inner")])["other"]


def test_code_with_writable_data_is_rejected() -> None:
    with pytest.raises(BackendError, match="writable"):
        load([compile_text("@state = global i64 1", NATIVE)])


def test_objects_of_other_machines_can_be_read_but_not_mixed() -> None:
    arm = _caller(target("aarch64"), "outer", "inner")
    assert {r.kind for r in parse(arm).relocations} <= {275, 277, 278, 284, 285, 286, 299, 282, 283}
    with pytest.raises(BackendError, match="different machines"):
        load([arm, _doubler("inner")])


def test_a_damaged_object_raises_a_backend_error_or_loads() -> None:
    whole = _caller(NATIVE, "outer", "inner")
    for size in range(0, len(whole), 7):
        with pytest.raises(BackendError):
            parse(whole[:size])
    rng, loaded = np.random.default_rng(0), 0
    for _ in range(2000):
        broken = bytearray(whole)
        for at in rng.integers(0, len(whole), 3):
            broken[at] = rng.integers(0, 256)
        try:
            load([bytes(broken)], {"inner": 1})
            loaded += 1
        except BackendError:
            continue
    assert 0 < loaded < 2000


@pytest.mark.parametrize(("machine", "kind"), [("x86-64", 1), ("aarch64", 257)])
def test_a_relocation_of_eight_bytes_does_not_reach_beyond_its_section(machine: str, kind: int) -> None:
    text = "@pointer = constant ptr @inner\ndeclare void @inner()"
    broken = bytearray(compile_text(text, target(machine)))
    ((offset, kind_found),) = ((r.offset, r.kind) for r in parse(bytes(broken)).relocations)
    assert (offset, kind_found) == (0, kind)
    entries = [at for at in range(len(broken) - 24) if struct.unpack_from("<QI", broken, at) == (0, kind)]
    for at in entries:
        struct.pack_into("<Q", broken, at, 4)
    with pytest.raises(BackendError, match="a relocation changes byte 4 of a section of 8"):
        parse(bytes(broken))


def test_a_section_count_beyond_the_file_is_rejected() -> None:
    broken = bytearray(_doubler("inner"))
    struct.pack_into("<H", broken, 60, 0xFFFE)
    with pytest.raises(BackendError, match="ends before byte"):
        parse(bytes(broken))


def test_targets_are_looked_up_by_name() -> None:
    assert target("x86-64").vector_bytes == 16
    with pytest.raises(BackendError, match="'z80' is not a target"):
        target("z80")


def test_intrinsics_are_declared_once() -> None:
    module = Module("test", NATIVE.triple)
    k = Kernel(module, "test", {"x": PTR}, NATIVE)
    for _ in range(2):
        intrinsic(k.b, "llvm.fma.f32", F32, k.f32(1.0), k.f32(2.0), k.f32(3.0))
    assert str(module).count("declare") == 1
