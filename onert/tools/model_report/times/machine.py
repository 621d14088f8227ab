"""This machine's peak rates, measured with our own matrix products and with copies.

Source of the roofline: S. Williams, A. Waterman, D. Patterson, Roofline: An Insightful Visual Performance Model for
Multicore Architectures, CACM 52(4), 2009.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import onert
from onert.ir import Array, DType, OnertError, Package, Quantization, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.process.cpus import available_cpus

COPIED, HELD = 1 << 26, 1 << 17
"""Bytes of the arrays that are copied: more than all caches hold, and what fits a core's own cache."""
OUTER = 1 << 20
"""The assumed size of a level-2 cache if the system does not report it. Arrays of twice this size exceed it."""
SIDE = 256
"""Rows, columns and depth of the product."""
ROUNDS, ROUNDS_OUTER = 256, 16
"""Copies per measurement, between which threads do not synchronise."""
SECONDS, LEAST = 0.08, 30
"""The least time and number of measurements of each rate; several, because others disturb some on a busy machine."""


_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def caches(folder: Path = _CACHES) -> dict[str, int]:
    """Bytes of the data caches of a processor by level ("1", "2", ...), as listed by Linux; empty if unknown."""
    found = {}
    for index in sorted(folder.glob("index*")):
        level, kind, size = (_said(index / name) for name in ("level", "type", "size"))
        number, unit = size[:-1], _UNITS.get(size[-1:], 0)
        if kind in ("Data", "Unified") and level.isdecimal() and number.isdecimal() and unit:
            found[level] = int(number) * unit
    return found


def _said(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


@cache
def machine(threads: int) -> dict[str, Any]:
    """The machine's caches and peak rates on `threads` threads, measured once per process.

    Bytes per second of memory and caches count reads and writes. Operations per second of float32 and int8 count
    multiplications and additions; a peak that cannot be measured is left out.
    """
    peaks = {}
    for name, model in (("float32", _float_product()), ("int8", _stored_product())):
        try:
            peaks[name] = _peak(model, threads)
        except OnertError:
            continue
    return {
        "processor": _processor(),
        "threads": threads,
        "processors": available_cpus(),
        "caches": caches(),
        "bytes_per_second": _bandwidth(threads, COPIED // threads, 1),
        "cached_bytes_per_second": _bandwidth(threads, HELD, ROUNDS),
        "outer_bytes_per_second": _bandwidth(threads, 2 * caches().get("2", OUTER), ROUNDS_OUTER),
        "flops_per_second": peaks,
    }


def _best(call: Callable[[], object]) -> float:
    """Seconds of the fastest call, after one warm-up call."""
    call()
    times: list[float] = []
    end = perf_counter() + SECONDS
    while len(times) < LEAST or perf_counter() < end:
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return max(min(times), 1e-9)


def _bandwidth(threads: int, size: int, rounds: int) -> float:
    """Bytes read and written per second if each thread copies an array of its own `rounds` times."""

    def copy(pair: tuple[Array, Array]) -> None:
        for _ in range(rounds):
            np.copyto(*pair)

    pairs = [(np.ones(size, np.uint8), np.ones(size, np.uint8)) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        best = _best(lambda: list(pool.map(copy, pairs)))
    return 2 * size * threads * rounds / best


def _peak(model: Subgraphs, threads: int) -> float:
    program = onert.compile(Package((model,), "product"), num_threads=threads)
    with onert.Execution(program) as execution:
        info = program.inputs[0]
        execution.set_input(0, np.ones([d or 1 for d in info.shape], info.dtype.numpy))
        return 2 * SIDE**3 / _best(execution.execute)


def _float_product() -> Subgraphs:
    b = Builder("product")
    x = b.input(TensorType(DType.FLOAT32, (SIDE, SIDE)), "x")
    weight = b.constant(np.full((SIDE, SIDE), 0.5, np.float32))
    return b.model([b.add(FullyConnected(), x, weight, None)])


def _stored_product() -> Subgraphs:
    b = Builder("product")
    q = Quantization((0.5,), (0,))
    x = b.input(TensorType(DType.INT8, (SIDE, SIDE), q), "x")
    weight = b.constant(np.full((SIDE, SIDE), 3, np.int8), q)
    return b.model([b.add(FullyConnected(), x, weight, None, quantization=(Quantization((64.0,), (0,)),))])


def _processor() -> str:
    """The processor's name as reported by the system."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
