"""Processor figures used by cost models: from a file, from the system, and measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve, fields

import onert
from onert.ir import Array, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.conv import Conv2D
from onert_llvm.schedule.cost_model import Shape, packed_rows, packed_tile, row_work
from onert_llvm.target import isa, machines, processor
from onert_llvm.target.figures import LISTED
from onert_llvm.target.figures import USUAL as USUAL_FIGURES
from onert_llvm.target.machines import Machine, machine, machine_of

X86 = "processor : 0\nvendor_id : AuthenticAMD\ncpu family : 26\nmodel : 2\n\nprocessor : 1\nmodel : 3\n"
ARM = "processor\t: 0\nFeatures\t: fp\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"


def test_listed_machines_have_valid_figures() -> None:
    assert USUAL_FIGURES.keys() == {each.name for each in fields(Machine)}
    assert all(row.keys() <= USUAL_FIGURES.keys() for row in LISTED.values())
    assert all(machine_of(f"{name} : ").clock == row.get("clock", USUAL.clock) for name, row in LISTED.items())


def _listed(folder: Path, cpuinfo: str, *caches: str) -> str:
    (folder / "cpuinfo").write_text(cpuinfo)
    for number, facts in enumerate(caches):
        index = folder / f"index{number}"
        index.mkdir()
        for name, fact in zip(("level", "type", "size"), facts.split(), strict=True):
            (index / name).write_text(f"{fact}\n")
    return processor.description(folder / "cpuinfo", folder)


REPORTED: dict[str, tuple[str, tuple[str, ...], str]] = {
    "x86-64": (X86, ("1 Data 48K", "1 Instruction 32K", "2 Unified 1M", "3 Unified 32M"),
               "AuthenticAMD 26 2 : first_cache=49152 second_cache=1048576"),
    "Arm": (ARM, ("1 Data 64K",), "0x41 0xd0c : first_cache=65536"),
    "nothing": ("", (), " : "),
    "nonsense": ("vendor_id\n:::\n", ("1 Data K", "x Unified 3M", "2 Unified 3Q"), " : "),
}  # fmt: skip


@pytest.mark.parametrize("name", REPORTED)
def test_a_processor_is_described_by_what_the_system_reports(name: str, tmp_path: Path) -> None:
    cpuinfo, caches, expected = REPORTED[name]
    assert _listed(tmp_path, cpuinfo, *caches) == expected


USUAL = machine_of("")
FOUND: dict[str, tuple[str, dict[str, float]]] = {
    "another machine": ("", {}),
    "a processor that is not listed": ("Somebody 1 2 : ", {}),
    "one that is listed": ("AuthenticAMD 26 2 : ", {"first_cache": 49152, "clock": 4.06e9}),
    "a longer number": ("AuthenticAMD 261 2 : ", {}),
    "its own caches": ("AuthenticAMD 26 2 : second_cache=2097152", {"first_cache": 49152, "second_cache": 2097152}),
    "what is kept": (" : first_cache=65536 + clock=3e9 outer_bytes=6e10", {"first_cache": 65536, "far_bytes": 20.0}),
    "damaged": (" : first_cache=many + clock=-1 outer_bytes= dots=nan latency=inf speed=3 =", {}),
}


@pytest.mark.parametrize("name", FOUND)
def test_figures_reported_by_a_machine_override_the_listed_ones(name: str) -> None:
    described, expected = FOUND[name]
    found = machine_of(described)
    assert {key: getattr(found, key) for key in expected} == expected
    assert expected or found == USUAL


def test_only_native_code_depends_on_this_machine_s_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isa, "processor", lambda: "Somebody 1 : second_cache=4194304")
    native = isa.target("native")
    assert machine(native).second_cache == 4194304
    assert machine(isa.target(native.name)) == USUAL
    assert "second_cache=4194304" in str(native)


def test_choices_follow_the_figures() -> None:
    shape = Shape(4096, 256, 512)
    small, large = (
        evolve(isa.runnable()[-1], processor=f" : second_cache={size} + latency={latency}")
        for size, latency in ((1 << 18, 4), (1 << 22, 16))
    )
    tile = packed_tile(shape, small)
    cuts = [row_work(shape, tile, 4, 2048, each).mc for each in (small, large)]
    assert cuts[0] < cuts[1]
    one = Shape(1, 16, 512)
    assert min(packed_rows(one, small)) < min(packed_rows(one, large))


@pytest.mark.parametrize("first_cache", [32768, 49152])
def test_a_tile_has_at_most_as_many_aliasing_rows_as_the_first_cache_holds(first_cache: int) -> None:
    target = evolve(isa.runnable()[-1], processor=f" : first_cache={first_cache}")
    for channels in (1024, 2048, 3072):
        shape = Shape(196, 256, channels)
        apart, unknown = (packed_tile(evolve(shape, row_stride=each), target) for each in (4 * channels, 0))
        assert apart.mr <= first_cache // 4096
        assert packed_tile(evolve(shape, row_stride=4 * channels + 64), target) == unknown
        assert apart.split == unknown.split


def test_measured_figures_are_stored_for_this_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path))
    processor.processor.cache_clear()
    try:
        before = isa.target("native")
        each = 2 * 3e9 * before.f32
        rates = {"float32": each * machine(before).products, "int8": each * before.group, "outer": 6e10}
        machines.calibrate(rates)
        found = machine(isa.target("native"))
        assert (found.clock, found.far_bytes, found.dots) == (3e9, 20.0, 1.0)
        assert machine(before) != found
    finally:
        processor.processor.cache_clear()


def _network() -> Package:
    rng = np.random.default_rng(0)
    b = Builder("network")
    x = b.input(TensorType(DType.FLOAT32, (1, 14, 14, 32)), "x")
    for outputs, size in ((64, 3), (48, 1)):
        depth = 32 if size == 3 else 64
        weights = b.constant(rng.uniform(-1, 1, (outputs, size, size, depth)).astype(np.float32))
        x = b.add(Conv2D(), x, weights, None)
    return Package((b.model([x]),), "network")


@pytest.mark.parametrize("figures", ["first_cache=4096 second_cache=65536", "latency=40 products=1 outer_bytes=1e9"])
def test_results_do_not_depend_on_the_figures(figures: str, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.random.default_rng(1).uniform(-1, 1, (1, 14, 14, 32)).astype(np.float32)

    def results(threads: int) -> Array:
        (found,) = onert.Execution(onert.compile(_network(), num_threads=threads)).run([array]).values()
        return found

    usual = results(1)
    monkeypatch.setattr(isa, "processor", lambda: f" : {figures}")
    found = [results(threads) for threads in (1, 2, 3)]
    assert len({array.tobytes() for array in found}) == 1
    np.testing.assert_allclose(found[0], usual, rtol=0, atol=3e-6 * float(np.ptp(usual)))
