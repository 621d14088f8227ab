"""Writes weights and structures in TNN's file layout."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import frozen

from onert.ir import Array

MAGIC = {1: 0xFABC0002, 2: 0xFABC0004}
CODES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "int64": 5, "uint32": 6}
TYPES = {
    "Convolution": 1,
    "BatchNormCxx": 2,
    "Scale": 16,
    "BatchNorm": 18,
    "InnerProduct": 19,
    "Deconvolution": 22,
    "PReLU": 35,
    "Add": 38,
    "Mul": 42,
    "InstBatchNormCxx": 43,
    "BiasAdd": 54,
    "Const": 100,
    "Gather": 104,
    "MatMul": 105,
    "Sub": 108,
    "Div": 175,
    "DetectionPostProcess": 197,
    "Convolution3D": 201,
    "Convolution1D": 203,
    "HDRGuide": 302,
    "ScatterND": 305,
    "ConstantOfShape": 308,
    "Equal": 324,
    "BlobScale": 600,
}
"""TNN's numbers for layer types."""
_NEWER = 999
"""Stands for the numbers of newer types, whose names already determine how their weights are stored."""


@frozen(eq=False)
class Resource:
    """The weights of one layer: buffers, one-byte flags, numbers and strings in file order."""

    type: str
    name: str
    parts: Sequence[Array | bytes | int | str]


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<i", len(encoded)) + encoded


def buffer(array: Array, version: int) -> bytes:
    content = array.tobytes()
    out = struct.pack("<Iii", MAGIC[version], CODES[array.dtype.name], len(content))
    if version == 2 and content:
        out += struct.pack(f"<{array.ndim + 1}i", array.ndim, *array.shape)
    return out + content


def part(value: Array | bytes | int | str, version: int) -> bytes:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bytes):
        return value
    return struct.pack("<i", value) if isinstance(value, int) else buffer(value, version)


def resource(given: Resource, version: int, *, named_type: bool = True) -> bytes:
    plain = given.type.removeprefix("Quantized")
    out = struct.pack("<i", TYPES.get(plain, _NEWER)) + (text(given.type) if named_type else b"") + text(given.name)
    return out + b"".join(part(value, version) for value in given.parts)


def model(
    resources: Sequence[Resource], constants: Mapping[str, Array] | None = None, version: int = 2, *, magic: bool = True
) -> bytes:
    out = struct.pack("<I", MAGIC[version]) if magic else b""
    out += struct.pack("<i", len(resources)) + b"".join(resource(r, version) for r in resources)
    if constants:
        out += struct.pack("<Ii", MAGIC[version], len(constants))
        out += b"".join(text(name) + buffer(array, version) for name, array in constants.items())
    return out


def structure(inputs: str, outputs: str, layers: Iterable[str], version: int = 2) -> str:
    """The text of a structure; inputs and layers are given in the file's syntax."""
    lines = [f"1 0 1 {MAGIC[version]} ,", f"{inputs} ,", " ,", f"{outputs} ,", " 0 ,", *(f"{one} ," for one in layers)]
    return "".join(f'"{line}"\n' for line in lines)


def write(
    place: Path,
    proto: str,
    resources: Sequence[Resource],
    constants: Mapping[str, Array] | None = None,
    version: int = 2,
) -> Path:
    """Write both files to a folder; returns the structure's path."""
    place.joinpath("model.tnnmodel").write_bytes(model(resources, constants, version))
    path = place / "model.tnnproto"
    path.write_text(proto, encoding="utf-8")
    return path


def numbers(seed: int, *shape: int, spread: float = 1.0) -> Array:
    """Random numbers from -spread to spread."""
    out: Array = (np.random.default_rng(seed).random(shape, np.float32) * 2 - 1) * np.float32(spread)
    return out
