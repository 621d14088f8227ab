"""The processor figures that cost models use: `figures.py`, overridden by what this machine reports about itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from attrs import evolve, fields, frozen

from onert.ir.value import Value

from .figures import LISTED, USUAL
from .isa import Isa, target
from .processor import store_figures


@frozen
class Machine(Value):
    """Figures of a processor; `figures.py` explains each and its unit."""

    first_cache: int
    second_cache: int
    clock: float
    outer_bytes: float
    products: float
    halves: float
    dots: float
    latency: float
    block: float
    step: float
    row: float
    column: float
    float_block: tuple[float, float, float]
    float_step: tuple[float, float, float]
    float_panel: float
    spread: float
    unfetched: float
    stream: int
    foreign: float
    transforms: tuple[tuple[float, float], ...]
    byte_forward: float
    byte_back: float

    @property
    def far_bytes(self) -> float:
        """Bytes per cycle from beyond a core's own caches."""
        return self.outer_bytes / self.clock


@cache
def machine(isa: Isa) -> Machine:
    """The processor that code for an instruction set is generated for: this machine's if the set is "native"."""
    found = machine_of(isa.processor)
    return evolve(found, products=found.products * found.halves) if isa.narrow else found


def machine_of(processor: str) -> Machine:
    """The processor of a description (`processor.processor`); "" is a generic one."""
    name, _, rest = processor.partition(" : ")
    sizes, _, measured = rest.partition("+")
    found: dict[str, Any] = dict(USUAL)
    for beginning, row in LISTED.items():
        if f"{name} ".startswith(f"{beginning} "):
            found |= row
    found |= _pairs(sizes) | _pairs(measured)
    for whole in ("first_cache", "second_cache", "stream"):
        found[whole] = int(found[whole])
    return Machine(**found)


def scratch_stride(nbytes: int, threads: int, isa: Isa) -> int:
    """The distance in bytes between the scratch memory of threads: whole second-level caches, so that each thread uses
    the same memory for all layers, and no other thread has it in its cache.
    """
    step = machine(isa).second_cache if threads > 1 else 1
    return -(-nbytes // step) * step


def calibrate(figures: Mapping[str, float]) -> None:
    """Store the measured figures of this machine (`Backend.calibrate`). The clock is derived from the float32 rate and
    the usual number of vector products per cycle; byte products per cycle are rounded to halves, the measurements'
    accuracy.
    """
    isa = target("native")
    products = machine(isa).products
    clock = figures["float32"] / (2 * products * isa.f32)
    dots = round(2 * figures["int8"] / (2 * isa.group * isa.f32 * clock)) / 2
    store_figures({"clock": clock, "outer_bytes": figures["outer"], "dots": max(dots, 0.5)})


def _pairs(text: str) -> dict[str, float]:
    """The `name=value` figures in a description; malformed ones are ignored."""
    names = {each.name for each in fields(Machine)}
    pairs = (word.partition("=") for word in text.split())
    found = {name: _number(value) for name, _, value in pairs if name in names}
    return {name: value for name, value in found.items() if 0 < value < math.inf}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
