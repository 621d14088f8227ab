"""Reads a structure: text whose lines end with commas.

    "1 BLOBS 1 MAGIC ,"
    "INPUT DIMS... : INPUT DIMS... ,"        version 1
    "INPUT RANK DIMS... DTYPE : ... ,"       version 2
    " BLOB... ,"                             names of all blobs, ignored
    "OUTPUT... ,"
    " LAYERS ,"
    "TYPE NAME INPUTS OUTPUTS INPUT... OUTPUT... PARAMETER... ,"

Quotation marks and line breaks are ignored. Source: TNN's model_interpreter.cc and model_packer.cc.
"""

from __future__ import annotations

from attrs import frozen

from onert.frontend.flatbuffer import Data
from onert.ir import DType, ModelError
from onert.ir.value import Value

VERSIONS = {"4206624770": 1, "4206624772": 2}
_HEADER = 5
"""The number of lines before the layers."""
_ENDS = ("input", "output")
MOST = (1 << 31) - 1
DTYPES = {
    0: DType.FLOAT32,
    1: DType.FLOAT16,
    2: DType.INT8,
    3: DType.INT32,
    4: DType.BFLOAT16,
    5: DType.INT64,
    6: DType.UINT32,
}
"""Element types by TNN's numbers."""


@frozen
class Input(Value):
    """An input of the network: its name, shape and element type."""

    name: str
    shape: tuple[int, ...]
    dtype: DType


@frozen
class Layer(Value):
    """A layer as in the file: blobs by name, parameters as words."""

    index: int
    type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]

    @property
    def label(self) -> str:
        """The name of the layer in messages."""
        return f"layer {self.index} {self.type} '{self.name}'"


@frozen
class Structure(Value):
    """A complete structure; `version` is 1 or 2."""

    version: int
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    layers: tuple[Layer, ...]


def read_structure(data: Data) -> Structure:
    """Parse a structure file. Raises ModelError with the line that breaks a rule."""
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"byte {error.start} is not UTF-8 text") from error
    lines = [line.split() for line in text.replace('"', "").split(",")]
    if not lines[-1]:
        lines.pop()  # after the last comma
    if len(lines) <= _HEADER:
        raise ModelError(f"the structure has {len(lines)} lines, expected more than {_HEADER}")
    first = lines[0]
    magic = first[3] if len(first) > 3 else ""
    if magic not in VERSIONS:
        raise ModelError(f"the magic number is {magic!r}, expected {' or '.join(VERSIONS)}")
    version = VERSIONS[magic]
    inputs = tuple(_input(words, version) for words in _parts(lines[1]))
    names = [i.name for i in inputs]
    if len(set(names)) < len(names):
        raise ModelError(f"line 1 names an input twice: {', '.join(names)}")
    outputs = tuple(dict.fromkeys(lines[3]))
    if not outputs:
        raise ModelError("line 3 names no output")
    layers = tuple(_layer(at, words) for at, words in enumerate(lines[_HEADER:]) if words)
    return Structure(version, inputs, outputs, layers)


def _parts(words: list[str]) -> list[list[str]]:
    """Split words at colons."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _input(words: list[str], version: int) -> Input:
    if not words:
        raise ModelError("line 1 has an input without a name")
    name = words[0]
    numbers = tuple(_whole(word, f"a number of input '{name}'") for word in words[1:])
    if version == 1:
        shape, code = numbers, 0
    else:
        if not numbers or len(numbers) != numbers[0] + 2:
            raise ModelError(
                f"input '{name}' has {len(numbers)} numbers, expected its rank, that many sizes and a type"
            )
        shape, code = numbers[1:-1], numbers[-1]
    if not shape or any(not 0 < d <= MOST for d in shape):
        raise ModelError(f"input '{name}' has the shape {list(shape)}, expected sizes of at least 1")
    if code not in DTYPES:
        raise ModelError(f"input '{name}' has the element type {code}, expected one of {', '.join(map(str, DTYPES))}")
    return Input(name, shape, DTYPES[code])


def _layer(at: int, words: list[str]) -> Layer:
    place = f"layer {at} {words[0]}"
    if len(words) < 4:
        raise ModelError(f"{place} has {len(words)} words, expected its type, its name and two counts")
    place += f" '{words[1]}'"
    ins, outs = (_whole(word, f"{place}: the number of {what}s") for word, what in zip(words[2:4], _ENDS, strict=True))
    left = len(words) - 4
    if ins < 0 or outs < 1 or ins + outs > left:
        raise ModelError(
            f"{place} has {ins} inputs and {outs} outputs, expected at least 0 and 1, and no more than its {left} words"
        )
    behind = 4 + ins
    blobs = tuple(words[4:behind]), tuple(words[behind : behind + outs])
    return Layer(at, words[0], words[1], *blobs, tuple(words[behind + outs :]))


def _whole(word: str, place: str) -> int:
    try:
        found = int(word)
    except ValueError as error:
        raise ModelError(f"{place} is {word!r}, expected an integer") from error
    if abs(found) > MOST:
        raise ModelError(f"{place} is {found}, expected {-MOST} to {MOST}")
    return found
