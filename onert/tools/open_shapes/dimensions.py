"""The dynamic dimensions of inputs: which of them share a size, and what they measure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum

from attrs import frozen

from onert.backend import TensorInfo
from onert.frontend.metadata import ModelMetadata
from onert.image import Layout
from onert.ir.value import Value
from onert.tools.inputs import plane_of

Place = tuple[int, int]
"""An input's position and one of its axes."""
_BATCH = re.compile(r"batch|^(n|b|bs)$", re.IGNORECASE)
_LENGTH = re.compile(r"seq|len|time|frame|token|step|sample|audio|wave|signal", re.IGNORECASE)
_SAMPLES = re.compile(r"sample|audio|wave|signal", re.IGNORECASE)


class Role(Enum):
    """What a dynamic dimension measures."""

    BATCH = "batch"
    HEIGHT = "height"
    WIDTH = "width"
    CHANNELS = "channels"
    SAMPLES = "samples"
    LENGTH = "length"


@frozen
class Dimension(Value):
    """Dynamic dimensions that share a size: all with the same name, or a single one without a name.

    `key` identifies it; `called` is its name in messages.
    """

    key: str
    called: str
    role: Role
    places: tuple[Place, ...]


def open_dimensions(
    infos: Sequence[TensorInfo], metadata: ModelMetadata, given: Mapping[int, tuple[int, ...]]
) -> tuple[Dimension, ...]:
    """The dynamic dimensions of the inputs without a `given` shape.

    A dimension for which the file has an initial size larger than 1 keeps that size and is left out.
    """
    places: dict[str, list[Place]] = {}
    for position, info in enumerate(infos):
        names = metadata.input(position).dimensions
        for axis, size in enumerate(info.open_shape if position not in given else ()):
            if size is None and info.shape[axis] in (None, 1):
                name = names[axis] if len(names) == len(info.shape) else ""
                places.setdefault(name or f"{position}:{axis}", []).append((position, axis))
    return tuple(_dimension(key, found, infos, metadata) for key, found in places.items())


def sizes_by_name(metadata: ModelMetadata, given: Mapping[int, tuple[int, ...]]) -> dict[str, int]:
    """The sizes of named dimensions, taken from the given shapes."""
    return {
        name: size
        for position, shape in given.items()
        for name, size in zip(metadata.input(position).dimensions, shape, strict=False)
        if name
    }


def _dimension(key: str, places: list[Place], infos: Sequence[TensorInfo], metadata: ModelMetadata) -> Dimension:
    position, axis = places[0]
    own = f"{position}:{axis}"
    roles = [_role("" if key == own else key, place, infos, metadata) for place in places]
    role = next((r for r in roles if r is not Role.LENGTH), Role.LENGTH)
    called = key if key != own else f"dimension {axis} of {infos[position].name!r}"
    if role in (Role.HEIGHT, Role.WIDTH):
        called = " and ".join(dict.fromkeys(r.value for r in roles if r in (Role.HEIGHT, Role.WIDTH)))
    return Dimension(key, called, role, tuple(places))


def _role(name: str, place: Place, infos: Sequence[TensorInfo], metadata: ModelMetadata) -> Role:
    """What a dimension measures, judged by its name and position."""
    position, axis = place
    info = infos[position]
    dims = info.open_shape
    if _BATCH.search(name):
        return Role.BATCH
    if _LENGTH.search(name):
        return Role.SAMPLES if _SAMPLES.search(name) else Role.LENGTH
    if axis == 0 and (len(dims) > 1 or info.dtype.is_handle):
        return Role.BATCH
    others = (each for at, each in enumerate(infos) if at != position and len(each.open_shape) > 1)
    if not name and len(dims) == 3 and dims.count(None) == axis == 1 and any(o.open_shape[0] is None for o in others):
        return Role.BATCH  # of a recurrent state: [layers, batch, features]
    sides = _sides(info, metadata.input(position).color)
    if axis in sides:
        return (Role.HEIGHT, Role.WIDTH)[sides.index(axis)]
    if len(dims) == 4 and axis == 1 and sides:
        return Role.CHANNELS
    return Role.LENGTH


def _sides(info: TensorInfo, color: str) -> tuple[int, ...]:
    """The axes of height and width of an input that takes images; empty for others."""
    dims = info.open_shape
    plane = plane_of(info, color)
    if plane is not None and (len(dims) != 3 or dims[0] is not None):
        last = len(dims) if plane.layout is Layout.NCHW else len(dims) - (dims[-1] == plane.channels)
        return (last - 2, last - 1) if 1 not in (plane.height, plane.width) else ()
    if len(dims) == 4 and dims[1:] == (None, None, None):
        return (2, 3)  # channels first, as in files with dynamic channels
    return ()
