"""Read the description in a bundle's header."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from onert.backend import TensorInfo
from onert.ir import DType, ExecutionError, Quantization
from onert.ir.value import Value

from .variables import Role, Variable

_SIZE = re.compile(r"^ \*   (constants|mutables|activations) (\d+) bytes", re.MULTILINE)
_ALIGNMENT = re.compile(r"^ \* Memory areas, each at a multiple of (\d+) bytes", re.MULTILINE)
_CONTENT = re.compile(r"^ \* Content: ([0-9a-f]{32})$", re.MULTILINE)
_TARGET = re.compile(r"^/\* Bundle (\w+) for (\S+), made by onert\.$", re.MULTILINE)
_ERROR = re.compile(r'^ \*   (\d+): ("(?:[^"\\]|\\.)*")$', re.MULTILINE)
_ENTRY = re.compile(r"^ \* Entry point (\w+):$", re.MULTILINE)
_VARIABLE = re.compile(
    r'^ \*   (input|output|state) ("(?:[^"\\]|\\.)*") (\w+)\[([\d, ]*)\]'
    r"(?: scale (\S+) zero point (-?\d+))?: (\d+) elements, (\d+) bytes at (\d+)"
    r'(?:, also ("(?:[^"\\]|\\.)*"(?:, "(?:[^"\\]|\\.)*")*))?$'
)


@frozen
class Description(Value):
    """A bundle as its header describes it.

    The sizes of the memory areas in bytes, the identifier that object, weights and header share, the variables of each
    entry point, and the messages of error codes (with N for the element).
    """

    name: str
    target: str
    constants: int
    mutables: int
    activations: int
    alignment: int
    content: bytes
    variables: tuple[Variable, ...]
    errors: Mapping[int, str]

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(variable.entry for variable in self.variables))


def read(path: Path) -> Description:
    """The description in a header. Raises ExecutionError if the header was not written by onert."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExecutionError(f"{path} cannot be read: {error}") from error
    text = text.partition("\n */")[0]
    first, alignment, content = _TARGET.search(text), _ALIGNMENT.search(text), _CONTENT.search(text)
    sizes = {kind: int(size) for kind, size in _SIZE.findall(text)}
    if first is None or alignment is None or content is None or len(sizes) != 3:
        raise ExecutionError(f"{path} is not the header of a bundle")
    return Description(
        first[1],
        first[2],
        **sizes,
        alignment=int(alignment[1]),
        content=bytes.fromhex(content[1]),
        variables=variables(text),
        errors={int(code): json.loads(message) for code, message in _ERROR.findall(text)},
    )


def variables(text: str) -> tuple[Variable, ...]:
    """The variables in lines of the form of `header.describe`, each with the entry point above it."""
    found: list[Variable] = []
    entry = ""
    for line in text.splitlines():
        opened, match = _ENTRY.match(line), _VARIABLE.match(line)
        if opened is not None:
            entry = opened[1]
        elif match is not None:
            role, name, dtype, dims, scale, zero, _, _, offset, others = match.groups()
            shape = tuple(int(d) for d in dims.split(",") if d.strip())
            q = Quantization((float(scale),), (int(zero),)) if scale else None
            info = TensorInfo(
                json.loads(name), DType.from_text(dtype), shape, q, None, tuple(json.loads(f"[{others or ''}]"))
            )
            found.append(Variable(entry, Role(role), info, int(offset)))
    return tuple(found)
