"""Messages about the sizes chosen for dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onert.backend import TensorInfo
from onert.ir import shape as shapes

from .dimensions import Dimension, Role


def sentence(dimensions: Sequence[Dimension], sizes: Mapping[str, int], option: str) -> str:
    """The sizes chosen for dynamic dimensions, and the option that sets them; empty if only batches are dynamic."""
    own = [each for each in dimensions if each.role is not Role.BATCH]
    found: dict[str, str] = {}
    for each in own:
        found.setdefault(each.called, str(sizes[each.key]))
    if not found:
        return ""
    names, values = list(found), list(found.values())
    if names[:2] == [Role.HEIGHT.value, Role.WIDTH.value]:
        values[:2] = [" x ".join(values[:2])]
    elif names[0] == "height and width":
        values[0] = f"{values[0]} x {values[0]}"
    is_, it = ("is", "it") if len(own) == 1 and names[0] != "height and width" else ("are", "them")
    return f"{_listed(names)} {is_} dynamic, assumed to be {_listed(values)}; {option} sets {it}"


def refusal(inputs: Sequence[TensorInfo], first: str, option: str) -> str:
    """The error for a model with dynamic dimensions for which no sizes were found."""
    named = _listed([f"{info.name!r} {info.dtype.text}{shapes.text(info.open_shape)}" for info in inputs])
    of = "an input" if len(inputs) == 1 else "inputs"
    reason = f" ({first})" if first else ""
    return f"no suitable sizes were found for the dynamic dimensions of {of} {named}{reason}; set them with {option}"


def _listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
