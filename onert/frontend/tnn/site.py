"""A layer that is being translated: its parameters, inputs and weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from onert.ir import Array, ModelError

from .buffers import INT8, Buffer, WeightRequest, sized
from .graph import Graph
from .structure import MOST, Layer

_T = TypeVar("_T", int, float, str)
_GREATEST = float(np.finfo(np.float32).max) * (1 + 1e-6)


class Site:
    """The interface for the tables' functions, which read a layer's parameters in order and return its outputs."""

    def __init__(self, graph: Graph, layer: Layer, following: Sequence[Layer] = ()) -> None:
        self.graph = graph
        self.layer = layer
        self.following = following
        """The layers after this one."""
        self._next = 0

    @property
    def remaining(self) -> int:
        """The number of unread parameters."""
        return len(self.layer.parameters) - self._next

    def _word(self) -> str | None:
        if not self.remaining:
            return None
        self._next += 1
        return self.layer.parameters[self._next - 1]

    def _read(
        self,
        what: str,
        parse: Callable[[str], _T],
        kind: str,
        fits: Callable[[_T], bool],
        bounds: str,
        default: _T | None,
    ) -> _T:
        """The next parameter, parsed and checked; the default if there is none."""
        word = self._word()
        if word is None:
            if default is None:
                raise ModelError(f"parameter {self._next} ({what}) is missing")
            return default
        try:
            found = parse(word)
        except ValueError as error:
            raise ModelError(f"parameter {self._next - 1} ({what}) is {word!r}, expected {kind}") from error
        if not fits(found):
            raise ModelError(f"parameter {self._next - 1} ({what}) is {word}, expected {bounds}")
        return found

    def integer(self, what: str, default: int | None = None, low: int = -MOST - 1, high: int = MOST) -> int:
        """The next parameter, an integer between two bounds."""
        return self._read(what, int, "an integer", lambda n: low <= n <= high, f"{low} to {high}", default)

    def text(self, what: str) -> str:
        """The next parameter as text."""
        return self._read(what, str, "text", lambda _: True, "text", None)

    def number(self, what: str, default: float | None = None) -> float:
        """The next parameter, a finite number, rounded to float32."""
        found = self._read(what, float, "a number", lambda x: abs(x) <= _GREATEST, "a float32", default)
        return float(np.float32(found))

    def integer_list(self, what: str) -> tuple[int, ...]:
        """A count, and that many integers."""
        count = self.integer(f"number of {what}", 0, 0, self.remaining)
        return tuple(self.integer(what) for _ in range(count))

    def flag(self, what: str, default: int | None = None) -> bool:
        return self.integer(what, default) != 0

    @property
    def x(self) -> int:
        """The first input's real numbers."""
        return self.input(0)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first input."""
        return self.graph.shape(self.x)

    def blob(self, at: int) -> str:
        """The name of an input."""
        if at >= len(self.layer.inputs):
            raise ModelError(f"it has {len(self.layer.inputs)} inputs, expected at least {at + 1}")
        return self.layer.inputs[at]

    def input(self, at: int) -> int:
        return self.graph.real(self.blob(at))

    @property
    def inputs(self) -> tuple[int, ...]:
        return tuple(map(self.graph.real, self.layer.inputs))

    def axis(self, what: str, rank: int, default: int | None = None) -> int:
        """An axis of a tensor of `rank`; negative ones count from the end."""
        found = self.integer(what, default)
        if not -rank <= found < rank:
            raise ModelError(f"{what} is {found}, expected an axis of {rank} dimensions")
        return found % rank

    def buffer(self, request: WeightRequest) -> Buffer | None:
        """A buffer of the layer's weights; None if there is none. Raises ModelError if its element count differs."""
        found = self.graph.weights.buffer(self.layer, request)
        what = f"its {request.name}"
        return None if found is None else sized(found, math.prod(request.shape), what)

    def required_buffer(self, request: WeightRequest) -> Buffer:
        """Like `buffer`, but raises ModelError if there is none."""
        found = self.buffer(request)
        if found is None:
            raise ModelError(f"it has no {request.name}")
        return found

    def real_weight(self, request: WeightRequest, outputs: int) -> Array:
        """A weight as real numbers: stored integers are multiplied by their scales.

        `outputs` is the number of rows in storage, which have a scale each or share one.
        """
        buffer = self.required_buffer(request)
        if buffer.code != INT8:
            return buffer.real().reshape(request.shape)
        scales = self.channel_scales(outputs, request.terms)
        rows = buffer.real().reshape(outputs, -1) * scales.reshape(-1, 1)
        return rows.reshape(request.shape)

    def integer_weight(self, shape: tuple[int, ...], terms: int) -> Buffer:
        """A weight stored as int8."""
        found = self.required_buffer(WeightRequest("weight", shape, terms, integer=True))
        if found.code != INT8:
            raise ModelError("its weight is not int8")
        return found

    def channel_scales(self, outputs: int, terms: int) -> Array:
        """The scales of an integer weight, one in total or one per output; its zero points must be 0."""
        parts = self.graph.weights
        zeros = parts.buffer(self.layer, WeightRequest("zero point", (outputs,)))
        if zeros is not None and zeros.array().any():
            raise ModelError("its weight has zero points other than 0, which is not supported")
        found = parts.buffer(self.layer, WeightRequest("scale", (outputs,), terms, integer=True))
        if found is None or found.count not in (1, outputs):
            have = 0 if found is None else found.count
            raise ModelError(f"its weight has {have} scales, expected 1 or {outputs}")
        return found.real()


Writer = Callable[[Site], Sequence[int]]
"""Adds a layer's operations to the graph, and returns its outputs."""
