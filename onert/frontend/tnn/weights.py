"""Reads weight files: a sequence of resources made of little-endian numbers, strings and buffers.

    u32 magic (missing in old files), i32 count,
    count times: i32 type, string type name, string layer name (old files have no type name), resource
    u32 magic, i32 count, count times: string name, buffer          if at least 4 bytes are left

A string is its length (i32) and its bytes. A buffer is a magic number, a type and a length in bytes (i32 each); if it
is not empty, its rank and dimensions (i32 each) follow if its magic number is that of version 2, and then its bytes.

Source: TNN's objseri.h, model_interpreter.cc and layer_interpreter/*.cc. Everything is checked before it is used.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping

from attrs import frozen

from onert.frontend.flatbuffer import Data
from onert.ir import ModelError
from onert.ir.value import Value

from .buffers import INT8, Buffer, WeightRequest
from .layer_types import KNOWN, base_type
from .structure import DTYPES, MOST, Layer

MAGIC = {0xFABC0002: 1, 0xFABC0004: 2}
_COUNTED = 0x1FFFFFFF
"""The bits of the resource count; the others are flags."""
_RESOURCES = 10_000
_RANK = 8
SCALES = "_scale_data_"
"""The suffix of a blob's name in the name of the resource with its scales."""


class _Reader:
    """Reads the data sequentially."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, count: int, what: str) -> Data:
        if count > self.left:
            raise ModelError(f"{what} has {self.left} bytes at offset {self.at}, expected {count}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, what: str) -> int:
        (found,) = struct.unpack("<i", self.take(4, what))
        return int(found)

    def magic(self, what: str) -> int:
        return self.number(what) & 0xFFFFFFFF

    def text(self, what: str) -> str:
        length = self.number(what)
        if length < 0:
            raise ModelError(f"{what} has the length {length} at offset {self.at - 4}")
        return bytes(self.take(length, what)).decode("utf-8", "replace")

    def buffer(self, what: str) -> Buffer:
        version = MAGIC.get(self.magic(what))
        if version is None:
            raise ModelError(f"{what} does not begin with a magic number at offset {self.at - 4}")
        code, length = self.number(what), self.number(what)
        if length <= 0:
            return Buffer(0, None, b"")
        if code not in DTYPES:
            raise ModelError(f"{what} has the element type {code} at offset {self.at - 8}")
        if length % DTYPES[code].itemsize:
            raise ModelError(f"{what} has {length} bytes, expected a multiple of {DTYPES[code].itemsize}")
        shape = self._shape(what, length // DTYPES[code].itemsize) if version == 2 else None
        return Buffer(code, shape, self.take(length, what))

    def _shape(self, what: str, count: int) -> tuple[int, ...] | None:
        """The dimensions of a buffer; None if it has none, or if they do not match its element count."""
        rank = self.number(what)
        if not 0 <= rank <= _RANK:
            raise ModelError(f"{what} has the rank {rank}, expected 0 to {_RANK}")
        shape = tuple(self.number(what) for _ in range(rank))
        fits = rank > 0 and all(0 < d <= MOST for d in shape) and math.prod(shape) == count
        return shape if fits else None


Parts = dict[str, Buffer]


def _scales(r: _Reader) -> Parts:
    """Newer files have zero points (int8) before the scales."""
    first = r.buffer("scale")
    return {"zero point": first, "scale": r.buffer("scale")} if first.code == INT8 else {"scale": first}


def _convolution(r: _Reader) -> Parts:
    r.text("layer name")
    has_bias = r.number("bias flag")
    parts = {"weight": r.buffer("weight")}
    if has_bias:
        parts["bias"] = r.buffer("bias")
    if parts["weight"].code == INT8:
        parts |= _scales(r)
    return parts


def _inner_product(r: _Reader) -> Parts:
    r.text("layer name")
    parts = {"weight": r.buffer("weight"), "bias": r.buffer("bias")}
    return parts | _scales(r) if parts["weight"].code == INT8 else parts


def _scale(r: _Reader) -> Parts:
    r.text("layer name")
    has_bias = r.number("bias flag")
    parts = {"scale": r.buffer("scale")}
    return parts | {"bias": r.buffer("bias")} if has_bias else parts


def _prelu(r: _Reader) -> Parts:
    r.text("layer name")
    return {"slope": r.buffer("slope")}


def _operand(r: _Reader) -> Parts:
    return {"weight": r.buffer("weight")}


def _matrix(r: _Reader) -> Parts:
    parts = _operand(r)
    return parts | {"scale": r.buffer("scale")} if parts["weight"].code == INT8 else parts


def _gather(r: _Reader) -> Parts:
    parts = {}
    for what in ("data", "indices"):
        if r.number(f"{what} flag") == 1:
            parts[what] = r.buffer(what)
    if "data" in parts and parts["data"].code == INT8:
        parts["scale"] = r.buffer("scale")
    return parts


def _statistics(r: _Reader) -> Parts:
    r.text("layer name")
    r.number("flag")
    return {part: r.buffer(part) for part in ("mean", "variance", "factor")}


def _anchors(r: _Reader) -> Parts:
    r.text("layer name")
    return {"anchors": r.buffer("anchors")}


def _present(*parts: str) -> Callable[[_Reader], Parts]:
    """Buffers that each follow a byte that says whether they are present."""

    def read(r: _Reader) -> Parts:
        return {part: r.buffer(part) for part in parts if r.take(1, f"{part} flag")[0]}

    return read


def _all(*parts: str) -> Callable[[_Reader], Parts]:
    """Consecutive buffers."""
    return lambda r: {part: r.buffer(part) for part in parts}


RESOURCES: Mapping[int, Callable[[_Reader], Parts]] = {
    **dict.fromkeys((1, 22, 201, 203), _convolution),
    **dict.fromkeys((2, 43), lambda r: {"scale": r.buffer("scale"), "bias": r.buffer("bias")}),
    **dict.fromkeys((38, 42, 108, 137, 140, 175, 198, 324), _operand),
    16: _scale,
    18: _statistics,
    19: _inner_product,
    35: _prelu,
    54: _all("bias"),
    100: _operand,
    104: _gather,
    105: _matrix,
    197: _anchors,
    302: _all("matrix", "offset", "shifts", "slopes", "mix", "bias"),
    305: _present("indices", "updates"),
    308: _all("value"),
    600: lambda r: _scales(r) | {"bias": r.buffer("bias")},
}
"""The parts of a resource, by TNN's layer type number."""
NAMED: Mapping[str, Callable[[_Reader], Parts]] = {
    **dict.fromkeys(("And", "Greater", "Less", "Mod", "Or"), _operand),
    "ScatterElements": _present("data"),
}
"""The same by type name, for types that are newer than type names in files."""


@frozen(eq=False)
class StoredWeights(Value):
    """The weights in a file: parts by name for each layer, and constants."""

    layers: Mapping[str, Mapping[str, Buffer]]
    constants: Mapping[str, Buffer]

    generated = False

    def buffer(self, layer: Layer, request: WeightRequest) -> Buffer | None:
        found = self.layers.get(layer.name, {}).get(request.name)
        return None if found is None or not found.count else found

    def constant(self, name: str, shape: tuple[int, ...] | None) -> Buffer | None:
        return self.constants.get(name)

    def scale(self, blob: str) -> Mapping[str, Buffer] | None:
        return self.layers.get(blob + SCALES)


def read_weights(data: Data) -> StoredWeights:
    """The weights in a file's content. Raises ModelError if it breaks a rule of the format."""
    r = _Reader(data)
    if r.magic("the magic number") not in MAGIC:
        r.at = 0
    count = r.number("the number of resources") & _COUNTED
    if count >= _RESOURCES:
        raise ModelError(f"there are {count} resources, expected fewer than {_RESOURCES}")
    layers: dict[str, Parts] = {}
    for at in range(count):
        kind, name = r.number(f"resource {at}"), r.text(f"resource {at}")
        read = RESOURCES.get(kind)
        if name in KNOWN:
            read, name = NAMED.get(base_type(name)[0], read), r.text(f"resource {at}")
        if read is None:
            raise ModelError(f"resource {at} '{name}' is of type {kind}, whose weights are not supported")
        try:
            layers[name] = read(r)
        except ModelError as error:
            raise ModelError(f"resource {at} '{name}': {error}") from error
    constants: Parts = {}
    if r.left >= 4:
        r.magic("constants")
        for at in range(_checked(r.number("the number of constants"), r.left)):
            name = r.text(f"constant {at}")
            constants[name] = r.buffer(f"constant {at} '{name}'")
    return StoredWeights(layers, constants)


def _checked(count: int, left: int) -> int:
    """The number of constants. Raises ModelError if it is too large; each one takes at least 16 bytes."""
    if not 0 <= count <= left // 16:
        raise ModelError(f"there are {count} constants in {left} bytes")
    return count
