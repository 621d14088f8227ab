"""The interfaces of models, cached so that a process that only needs inputs and outputs parses no file.

A model's interface has its signatures, and the inputs and outputs of the subgraphs in which runs begin. It is taken
from the parsed model, or from an entry of the cache if the content is known to be well-formed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from onert.backend.cache import Cache, default_directory
from onert.backend.writers import WRITERS
from onert.ir import Operand, Package, Signature, Subgraph
from onert.ir.content import Content
from onert.ir.value import ByIdentity

from . import key as keys
from .decoding import DecodeError, decode
from .encoding import EncodeError, encode
from .records import Records

_Part = tuple[int, tuple[int, ...], tuple[int, ...], tuple[tuple[int, Operand], ...], int]
"""A subgraph's index, inputs and outputs, these operands by number, and the number of all operands."""
_Stored = tuple[tuple[Signature, ...], tuple[_Part, ...]]


@frozen(eq=False)
class Ends(ByIdentity):
    """The inputs and outputs of a subgraph. Other operands are read from the model when they are asked for.

    `count` is the number of all operands.
    """

    package: Package
    index: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operands: Mapping[int, Operand]
    count: int

    @property
    def graph(self) -> Subgraph:
        """The whole subgraph."""
        return self.package.model[self.index]

    def operand(self, number: int) -> Operand:
        """An operand by its number, from 0 to `count` - 1."""
        found = self.operands.get(number)
        return self.graph.operands[number] if found is None else found

    def label(self, number: int) -> str:
        """The name of an operand in messages."""
        return self.operand(number).label(number)


class Interface:
    """The signatures of a package's first model by key, and the inputs and outputs of its entries by subgraph."""

    def __init__(self, package: Package) -> None:
        self._package = package
        content = package.content
        stored = _loaded(content) if content is not None and content.known else None
        self._is_stored = stored is not None
        self._content = _read(package) if stored is None else stored
        signatures, parts = self._content
        self.signatures: Mapping[str, Signature] = {each.key: each for each in signatures}
        self._ends = {
            index: Ends(package, index, inputs, outputs, dict(operands), count)
            for index, inputs, outputs, operands, count in parts
        }

    def __getitem__(self, index: int) -> Ends:
        """The inputs and outputs of the primary subgraph, or of a signature's."""
        return self._ends[index]

    def keep(self) -> None:
        """Store the interface in the cache, in the background."""
        content = self._package.content
        if content is not None and not self._is_stored:
            self._is_stored = True
            WRITERS.begin(lambda: _store(content, self._content))


def _read(package: Package) -> _Stored:
    model = package.model
    found = []
    for index in sorted({0, *(signature.subgraph for signature in model.signatures)}):
        graph = model[index]
        ends = dict.fromkeys((*graph.inputs, *graph.outputs))
        operands = tuple((number, graph.operands[number]) for number in ends)
        found.append((index, graph.inputs, graph.outputs, operands, len(graph.operands)))
    return model.signatures, tuple(found)


def _key(content: Content) -> str:
    outline = {**keys.process(), "interface": content.outline}
    return keys.key_of({**outline, "digest": keys.content_digest(content)})


def _store(content: Content, found: _Stored) -> None:
    if any(operand.data is not None for *_, operands, _ in found[1] for _, operand in operands):
        return
    try:
        document, buffers = encode(found, Records())
    except EncodeError:  # an operand with a value of a caller's own class
        return
    if not buffers:
        Cache(default_directory(os.environ)).store(_key(content), document, label="interface")


def _loaded(content: Content) -> _Stored | None:
    """The stored interface of a content; None if there is none, or if it is damaged."""
    document = Cache(default_directory(os.environ)).load(_key(content))
    if document is None:
        return None
    try:
        signatures, parts = decode(document, (), Records())
        if not all(map(_is_part, parts)) or not all(isinstance(each, Signature) for each in signatures):
            return None
        ends = {index: {*inputs, *outputs} for index, inputs, outputs, _, _ in parts}
        named = [(each.subgraph, t.operand) for each in signatures for t in (*each.inputs, *each.outputs)]
        if 0 not in ends or not all(number in ends[index] for index, number in named):
            return None
    except (DecodeError, TypeError, ValueError, LookupError):
        return None
    return signatures, parts


def _is_part(found: Any) -> bool:
    index, inputs, outputs, operands, count = found
    numbers = [number for number, _ in operands]
    return (
        isinstance(index, int)
        and {*numbers} == {*inputs, *outputs}
        and all(isinstance(number, int) and 0 <= number < count for number in numbers)
        and all(isinstance(operand, Operand) and operand.data is None for _, operand in operands)
    )
