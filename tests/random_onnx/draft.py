"""A random ONNX graph under construction, whose shapes are known for several samples of its open dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from attrs import field, frozen
from onnx import helper, numpy_helper

Dims = tuple[tuple[int, ...], ...]
"""The dimensions of a tensor, each with its size for every sample."""

CHANNELS = (3, 4, 6, 8, 16)
"""Sizes to draw for channels, features and units."""
LARGEST = 1 << 15
"""The most elements of a tensor for any sample."""


@frozen
class Drawn:
    """A float tensor of the graph."""

    name: str
    dims: Dims

    @property
    def rank(self) -> int:
        return len(self.dims)

    def is_fixed(self, axis: int) -> bool:
        return len(set(self.dims[axis])) == 1

    def least(self, axis: int) -> int:
        return min(self.dims[axis])


@frozen(eq=False)
class Draft:
    """A graph under construction."""

    rng: np.random.Generator
    samples: int
    nodes: list[onnx.NodeProto] = field(factory=list)
    constants: list[onnx.TensorProto] = field(factory=list)
    made: list[Drawn] = field(factory=list)

    def name(self) -> str:
        return f"t{len(self.nodes)}_{len(self.constants)}"

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def floats(self, *shape: int) -> str:
        return self.constant((self.rng.normal(size=shape) / max(1.0, np.sqrt(np.prod(shape[1:])))).astype(np.float32))

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node, and return the name of its result, or their names."""
        names = [f"{self.name()}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def result(self, name: str, dims: Iterable[Sequence[int]]) -> None:
        """Make a tensor available to later nodes, unless it is too large or has too many dimensions."""
        found = tuple(tuple(int(d) for d in sizes) for sizes in dims)
        sizes = np.prod(np.array(found, np.int64).reshape(len(found), self.samples), axis=0)
        if sizes.max() <= LARGEST and len(found) <= 5:
            self.made.append(Drawn(name, found))

    def any(self) -> Drawn:
        """A random tensor; later ones are more likely, so that graphs grow deep."""
        return self.made[int(len(self.made) * self.rng.random() ** 0.4)]

    def one_of(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def axis(self, x: Drawn) -> int:
        return int(self.rng.integers(x.rank))

    def same(self, size: int) -> tuple[int, ...]:
        """A dimension that is the same for all samples."""
        return (size,) * self.samples

    def sizes(self, x: Drawn) -> str:
        return str(self.add("Shape", x.name))

    def size(self, x: Drawn, axis: int) -> str:
        """A dimension as a tensor of one element."""
        return str(self.add("Shape", x.name, start=axis, end=axis + 1))

    def shape_of(self, x: Drawn, axes: Iterable[int]) -> list[str]:
        """Parts of a shape: integers where they are fixed, or computed."""
        fixed = self.chance(0.7)
        return [self.integers(x.dims[a][0]) if fixed and x.is_fixed(a) else self.size(x, a) for a in axes]

    def weights(self, *shape: int, terms: int) -> str:
        """A constant for sums of so many terms."""
        return self.constant((self.rng.normal(size=shape) / np.sqrt(terms)).astype(np.float32))
