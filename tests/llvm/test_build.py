"""The IR builder emits what it says: loops, variables across branches, integer arithmetic, masks, views."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from onert_llvm.codegen.llvm_codegen import compile_text
from onert_llvm.irbuilder import F32, I8, I32, I64, PTR, Kernel, Module, Val, vec
from onert_llvm.runtime.object_loader import load
from onert_llvm.target.isa import ISAS, Isa, target

from .harness import guarded

NATIVE = target("native")


def _call(emit: Callable[[Kernel], None], memory: np.ndarray, n: int = 0) -> None:
    module = Module("test", NATIVE.triple)
    k = Kernel(module, "test", {"memory": PTR, "n": I64}, NATIVE)
    emit(k)
    k.finish()
    image = load([compile_text(str(module), NATIVE)])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(image["test"])(memory.ctypes.data, n)


@pytest.mark.parametrize("n", [-3, 0, 1, 2, 7])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_loops_run_any_number_of_iterations(n: int, step: int) -> None:
    def emit(k: Kernel) -> None:
        count, total = k.var(k.index(0)), k.var(k.index(100))
        with k.loop(k.arg("n"), step=step) as i:
            with k.loop(i, start=-1) as j:
                total.set(total.get() + j)
            count.set(count.get() + 1)
        out = k.view(k.arg("memory"), I64, 1)
        out[0].store(count.get())
        out[1].store(total.get())

    out = np.zeros(2, np.int64)
    _call(emit, out, n)
    trips = list(range(0, n, step))
    assert out.tolist() == [len(trips), 100 + sum(j for i in trips for j in range(-1, i))]


def test_a_loop_without_iterations_is_rejected() -> None:
    k = Kernel(Module("test", NATIVE.triple), "test", {"n": I64}, NATIVE)
    with pytest.raises(ValueError, match="from 3 to 3"), k.loop(3, start=3):
        pass


@pytest.mark.parametrize("n", [0, 1, 5, 6])
def test_variables_merge_after_branches_in_loops(n: int) -> None:
    def emit(k: Kernel) -> None:
        even, odd, last = k.var(k.index(0)), k.var(k.index(0)), k.var(k.index(-1))
        with k.loop(k.arg("n")) as i, k.either((i % 2).eq(0)) as (then, otherwise):
            with then:
                even.set(even.get() + i)
                with k.when(i > 2):
                    last.set(i)
            with otherwise:
                odd.set(odd.get() + even.get())
        for slot, var in enumerate((even, odd, last)):
            k.view(k.arg("memory"), I64, 1)[slot].store(var.get())

    even, odd, last = 0, 0, -1
    for i in range(n):
        if i % 2 == 0:
            even += i
            last = i if i > 2 else last
        else:
            odd += even
    out = np.zeros(3, np.int64)
    _call(emit, out, n)
    assert out.tolist() == [even, odd, last]


def test_a_variable_cannot_be_used_outside_its_region() -> None:
    k = Kernel(Module("test", NATIVE.triple), "test", {"n": I64}, NATIVE)
    with k.loop(k.arg("n")):
        inner = k.var(k.index(0))
    with pytest.raises(KeyError, match="outside the region"):
        inner.get()


def test_integers_wrap_compare_and_convert_as_declared() -> None:
    def emit(k: Kernel) -> None:
        x = k.view(k.arg("memory"), I32, 1)
        a, b = x[0].load(), x[1].load()
        results: list[Val] = [
            a + b, a - b, a * b, a & b, a | b, a ^ b, a << 3, a >> 3, a.lshr(28), a.min(b), a.max(b), a.umin(b),
            (a < b).select(a, b), (a >= b).cast(I32, signed=False),
            a.ult(b).cast(I32, signed=False), a.ne(b).cast(I32, signed=False),
            a.cast(I8).cast(I32), a.cast(I8).cast(I32, signed=False), a.cast(F32).cast(I32), 5 - a, 3 * b,
        ]  # fmt: skip
        for slot, r in enumerate(results):
            x[slot].store(r)

    a, b = np.int32(-1234567), np.int32(98765)
    out = np.zeros(21, np.int32)
    out[:2] = a, b
    _call(emit, out)
    with np.errstate(over="ignore"):
        expected = [
            a + b, a - b, a * b, a & b, a | b, a ^ b, a << 3, a >> 3, np.uint32(a.view(np.uint32) >> 28).view(np.int32),
            a, b, b, a, 0, 0, 1, np.int32(a.astype(np.int8)), np.int32(a.astype(np.uint8)), a, 5 - a, 3 * b,
        ]  # fmt: skip
    assert out.tolist() == np.array(expected).tolist()


@pytest.mark.parametrize("valid", [-2, 0, 1, 7, 16, 20])
def test_masked_loads_and_stores_stay_in_bounds(valid: int) -> None:
    lanes = NATIVE.f32

    def emit(k: Kernel) -> None:
        x = k.view(k.arg("memory"), F32, 1)
        mask = k.mask(lanes, k.arg("n"))
        x[0].store(x[0].load(lanes, mask) * 2.0 + 1.0, mask)

    inside = min(max(valid, 0), lanes)
    out = guarded(np.arange(inside, dtype=np.float32)) if inside else guarded(np.zeros(0, np.float32))
    _call(emit, out, valid)
    np.testing.assert_array_equal(out, np.arange(inside) * 2 + 1)


def test_views_index_by_strides_and_shuffles_pick_lanes() -> None:
    def emit(k: Kernel) -> None:
        x = k.view(k.arg("memory"), F32, k.arg("n"), 1)
        row = x[2]
        picked = row[1].load(4).shuffle([3, 2, 1, 0])
        x[0, 0].store(picked.shuffle([0, 5, 2, 7], x[1, 0].load(4)))
        x[3, 3].store(picked.lane(1))
        with pytest.raises(IndexError, match="3 indices"):
            x[0, 0, 0]

    out = np.arange(20, dtype=np.float32)
    _call(emit, out, 5)
    assert out[:4].tolist() == [14, 6, 12, 8]
    assert out[18] == 13


@pytest.mark.parametrize("isa", ISAS, ids=lambda isa: isa.name)
def test_every_target_can_be_compiled_for(isa: Isa) -> None:
    module = Module("test", isa.triple)
    k = Kernel(module, "test", {"memory": PTR}, isa)
    x = k.view(k.arg("memory"), F32, 1)[0]
    x.store(k.fma(x.load(k.isa.f32), x.load(k.isa.f32), k.zeros(F32, k.isa.f32)))
    assert k.const(vec(I32, 4), -1).type.lanes == 4
    k.finish()
    assert compile_text(str(module), isa).startswith((b"\x7fELF", b"\0asm"))
