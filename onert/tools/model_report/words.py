"""Formatted numbers: counts, bytes, times and rates, the same in text and page."""

from __future__ import annotations

from collections.abc import Sequence


def scaled(number: float, unit: str, step: int = 1000) -> str:
    """A number with a unit prefix that leaves one to three digits before the point: 1.23 GB."""
    prefixes = ("", "Ki", "Mi", "Gi", "Ti", "Pi") if step == 1024 else ("", "k", "M", "G", "T", "P")
    at = 0
    while abs(number) >= step - 0.5 and at < len(prefixes) - 1:
        number, at = number / step, at + 1
    digits = 0 if at == 0 or abs(number) >= 99.95 else 1 if abs(number) >= 9.995 else 2
    return f"{number:.{digits}f} {prefixes[at]}{unit}".rstrip()


def nbytes(number: float) -> str:
    return scaled(number, "B", 1024)


def microseconds(number: float) -> str:
    """A time in us, ms or s."""
    for limit, divisor, unit in ((1e3, 1, "us"), (1e6, 1e3, "ms")):
        if number < limit * 0.9995:
            return f"{number / divisor:.3g} {unit}"
    return f"{number / 1e6:.3g} s"


def shape(dims: Sequence[int | None] | None) -> str:
    """Dimensions in brackets. `?` is a dynamic dimension, `*` an unknown rank."""
    return "[*]" if dims is None else f"[{', '.join('?' if d is None else str(d) for d in dims)}]"


def number(value: float) -> str:
    """A real number with four significant digits."""
    return f"{value:.4g}"
