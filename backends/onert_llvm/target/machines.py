"""What the cost models know of a processor: `figures.py`, over which goes what this machine says of itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from attrs import evolve, fields, frozen

from onert.ir.value import Value

from .figures import LISTED, USUAL
from .isa import Isa, target
from .processor import keep


@frozen
class Machine(Value):
    """Figures of a processor; `figures.py` says what each is, and in what units."""

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
    forward: tuple[float, ...]
    back: tuple[float, ...]
    byte_forward: float
    byte_back: float

    @property
    def far_bytes(self) -> float:
        """Bytes a cycle that come from beyond a core's own caches."""
        return self.outer_bytes / self.clock


@cache
def machine(isa: Isa) -> Machine:
    """The processor that code of an instruction set is made for: this machine's where the set is "native"."""
    found = of(isa.processor)
    return evolve(found, products=found.products * found.halves) if isa.narrow else found


def of(processor: str) -> Machine:
    """The processor of a description (`processor.processor`); "" is any."""
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


def calibrate(figures: Mapping[str, float]) -> None:
    """Keep what was measured of this machine (`Backend.calibrate`). Cycles are those in which registers of floats are
    multiplied as often as is usual, and products of bytes in a cycle are told by halves: measurements are no closer.
    """
    isa = target("native")
    products = machine(isa).products
    clock = figures["float32"] / (2 * products * isa.f32)
    dots = round(2 * figures["int8"] / (2 * isa.group * isa.f32 * clock)) / 2
    keep({"clock": clock, "outer_bytes": figures["outer"], "dots": max(dots, 0.5)})


def _pairs(text: str) -> dict[str, float]:
    """Figures that a description gives as `name=value`; what is none is left out."""
    names = {each.name for each in fields(Machine)}
    pairs = (word.partition("=") for word in text.split())
    found = {name: _number(value) for name, _, value in pairs if name in names}
    return {name: value for name, value in found.items() if 0 < value < math.inf}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
