"""Random ONNX models whose inputs have open dimensions, valid for given samples of their lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen
from onnx import TensorProto, helper

from onert.ir import Array

from . import layers, movement
from .draft import CHANNELS, Draft, Drawn

OPSET = 20
LONGEST = {"batch": 5, "time": 40, "height": 24, "width": 24}
"""The greatest length drawn for each open dimension."""


@frozen(eq=False)
class RandomModel:
    """A model, and for every sample its inputs' shapes by name."""

    content: bytes
    shapes: list[dict[str, tuple[int, ...]]]

    def inputs(self, sample: int, seed: int) -> dict[str, Array]:
        draw = np.random.default_rng([seed, sample])
        return {name: draw.normal(size=s).astype(np.float32) for name, s in self.shapes[sample].items()}


def random_model(seed: int, samples: int = 8, steps: int = 12) -> RandomModel:
    """The model of a seed, with lengths for each sample; each step adds a layer, if it fits the tensor drawn."""
    rng = np.random.default_rng(seed)
    sizes = {name: rng.integers(1, most + 1, samples) for name, most in LONGEST.items()}
    for name, found in sizes.items():
        if name != "batch":
            found[found < 3] += int(rng.integers(0, 4))
        if rng.random() < 0.4:
            found[:] = found[0]  # as if it were fixed, but open
    d = Draft(rng, samples)
    kinds: dict[str, list[Any]] = {
        "sequence": ["batch", "time", int(d.one_of(CHANNELS))],
        "signal": ["batch", int(d.one_of(CHANNELS)), "time"],
        "image": ["batch", int(d.one_of(CHANNELS)), "height", "width"],
        "rows": ["batch", int(d.one_of(CHANNELS))],
        "table": ["time", int(d.one_of(CHANNELS))],
    }
    chosen = rng.permutation(list(kinds))[: int(rng.integers(1, 3))].tolist()
    inputs = []
    for name in chosen:
        dims = kinds[name]
        inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        d.made.append(Drawn(name, tuple(tuple(sizes[s].tolist()) if isinstance(s, str) else d.same(s) for s in dims)))
    shapes = [{x.name: tuple(sizes[at] for sizes in x.dims) for x in d.made} for at in range(samples)]
    for _ in range(steps):
        d.one_of((*layers.STEPS, *movement.STEPS))(d, d.any())
    made = d.made[len(chosen) :]
    last = made[-1:] + [made[int(i)] for i in rng.integers(len(made), size=2)] if made else d.made[:1]
    names = list(dict.fromkeys(x.name for x in last))
    ranks = {x.name: x.rank for x in last}
    if not made:
        d.nodes.append(helper.make_node("Identity", [names[0]], ["y"]))
        names, ranks = ["y"], {"y": last[0].rank}
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * ranks[n]) for n in names]
    graph = helper.make_graph(d.nodes, "random", inputs, outputs, d.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return RandomModel(model.SerializeToString(), shapes)
