"""TNN models for mutation, and mutations that know both files' formats."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import numpy as np
from attrs import define, evolve
from frontend.tnn import tnn_writer as writer
from frontend.tnn.tnn_logic import LAYERS as LOGIC
from frontend.tnn.tnn_selection import LAYERS as SELECTION
from frontend.tnn.tnn_semantics import Network
from frontend.tnn.tnn_volume import LAYERS as VOLUME
from frontend.tnn.tnn_writer import Resource
from fuzz.batch import bytes_changed

from onert.ir import Array

NUMBERS = ("-2147483648", "-129", "-2", "-1", "0", "1", "2", "3", "7", "64", "65536", "1073741824", "2147483647")
WORDS = (*NUMBERS, "0.5", "1e-30", "1e30", "nan", "inf", "y", "x", "", ":", "é", "9" * 40)
LENGTHS = ("0", "1", "2", "5", "256", "65536", "1073741824", "2147483647", "-1")
NETWORK = (
    "Convolution c 1 1 x a 2 4 4 3 3 1 1 1 1 1 -1 1 1 1",
    "Deconvolution d 1 1 a b 1 4 2 2 2 2 2 0 0 1 -1 1 1 0",
    "Pooling p 1 1 b e 1 3 3 2 2 0 0 -1 -1 -1 1",
    "PReLU r 1 1 e f 0 0",
    "Upsample u 1 1 f g 2 2 2 0",
    "StridedSliceV2 s 1 1 g h 1 0 1 2147483647 1 2 1 2",
    "Permute t 1 1 h i 4 0 2 3 1",
    "Reshape v 1 1 i j 0 2 2 0 -1 0",
    "InnerProduct y 1 1 j k 3 1 0 1",
    "Softmax z 1 1 k y 1",
)
RESOURCES = (
    Resource("Convolution", "c", ["c", 1, writer.numbers(1, 4, 2, 3, 3), writer.numbers(2, 4)]),
    Resource("Deconvolution", "d", ["d", 1, writer.numbers(3, 1, 4, 2, 2, 2), writer.numbers(4, 2)]),
    Resource("PReLU", "r", ["r", writer.numbers(5, 2)]),
    Resource("InnerProduct", "y", ["y", writer.numbers(6, 3, 144), writer.numbers(7, 3)]),
)
_NETWORK = ("x 4 1 4 6 6 0", *NETWORK)
STRUCTURES = (
    *((_NETWORK,) * 12),
    *(("x 4 2 4 9 10 0", layer) for layer in SELECTION.values()),
    *LOGIC.values(),
    *VOLUME.values(),
)
"""Inputs followed by layers: a small network (twelve times), and every layer with a NumPy version."""


@define
class Model:
    """Both files as parsed: words of the lines, and weights."""

    lines: list[list[str]]
    resources: list[Resource]
    constants: dict[str, Array]

    @property
    def layers(self) -> list[list[str]]:
        return self.lines[5:]


def mutant(seed: int) -> tuple[str, bytes]:
    """A structure's text and its weights' bytes with up to three changes, determined by the seed."""
    rng = random.Random(seed)
    inputs, *layers = STRUCTURES[seed % len(STRUCTURES)]
    text = writer.structure(inputs, "y", layers)
    found = Network(text) if layers != [*NETWORK] else None
    resources, constants = (found.resources, found.constants) if found else ([*RESOURCES], {})
    model = Model([line.split() for line in text.replace('"', "").split(",")][:-1], [*resources], {**constants})
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        rng.choice(CHANGES)(rng, model)
    proto = "".join(f'"{" ".join(line)} ,"\n' for line in model.lines)
    content = writer.model(model.resources, model.constants)
    match rng.randrange(6):
        case 0:
            return proto, bytes_changed(rng, content, 4)
        case 1:
            return proto, _integers_changed(rng, content)
        case 2:
            return bytes_changed(rng, proto.encode(), 4).decode(errors="replace"), content
        case _:
            return proto, content


def _integers_changed(rng: random.Random, content: bytes) -> bytes:
    raw = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(0, max(len(raw) - 4, 1))
        raw[at : at + 4] = struct.pack("<i", rng.choice((-1, 0, 1, 2, 255, 1 << 30, rng.getrandbits(30))))
    return bytes(raw)


def _word(rng: random.Random, model: Model) -> None:
    line = rng.choice(model.lines)
    if line:
        line[rng.randrange(len(line))] = rng.choice(WORDS)


def _number(rng: random.Random, model: Model) -> None:
    """Change a layer's parameter: another number, or what another layer has in that place."""
    line = rng.choice(model.layers)
    places = [at for at in range(4, len(line)) if line[at].lstrip("-").isdigit()]
    if places:
        at = rng.choice(places)
        others = [other[at] for other in model.layers if len(other) > at]
        line[at] = rng.choice((*NUMBERS, *others))


def _fewer_words(rng: random.Random, model: Model) -> None:
    line = rng.choice(model.layers)
    if rng.random() < 0.7:
        del line[rng.randrange(1, len(line) + 1) :]
    else:
        line += rng.choices(NUMBERS, k=rng.randint(1, 4))


def _input(rng: random.Random, model: Model) -> None:
    """Change an input's length, rank or element type."""
    line = model.lines[1]
    places = [at for at, word in enumerate(line) if word.isdigit()]
    if places and rng.random() < 0.7:
        line[rng.choice(places)] = rng.choice(LENGTHS)
    elif places:
        at = places[0]
        rank = rng.randrange(9)
        line[at : at + 2 + int(line[at])] = [str(rank), *(rng.choice(LENGTHS[:4]) for _ in range(rank)), "0"]


def _blob(rng: random.Random, model: Model) -> None:
    """Make a layer read or write another blob: its own, a later one, or a missing one."""
    names = [word for line in model.layers for word in line[4:] if word.isalpha()]
    line = rng.choice(model.layers)
    places = [at for at in range(4, len(line)) if line[at].isalpha()]
    if places and names:
        line[rng.choice(places)] = rng.choice((*names, "nothing"))


def _order(rng: random.Random, model: Model) -> None:
    layers = model.layers
    match rng.randrange(3):
        case 0:
            rng.shuffle(layers)
        case 1:
            layers.insert(rng.randrange(len(layers) + 1), [*rng.choice(layers)])
        case _ if len(layers) > 1:
            del layers[rng.randrange(len(layers))]
    model.lines[5:] = layers


def _type(rng: random.Random, model: Model) -> None:
    """Change a layer's type, or make it quantised or not."""
    line = rng.choice(model.layers)
    types = [other.split()[0] for _, *layers in STRUCTURES for other in layers]
    line[0] = rng.choice((*types, f"Quantized{line[0]}", line[0].removeprefix("Quantized")))


def _outputs(rng: random.Random, model: Model) -> None:
    made = [word for line in model.layers for word in line[4:6]]
    model.lines[3] = rng.choices((*made, "x", "y", "nothing"), k=rng.randint(0, 3))


def _weight(rng: random.Random, model: Model) -> None:
    """Change a weight's element type, shape, size or layer, duplicate it or remove it."""
    if not model.resources:
        return
    at = rng.randrange(len(model.resources))
    found = model.resources[at]
    match rng.randrange(5):
        case 0:
            del model.resources[at]
        case 1:
            model.resources.append(found)
        case 2:
            model.resources[at] = evolve(found, name=rng.choice(model.resources).name)
        case _:
            parts = list(found.parts)
            part = rng.randrange(len(parts))
            parts[part] = _changed(rng, parts[part])
            model.resources[at] = evolve(found, parts=parts)


def _changed(rng: random.Random, part: Array | bytes | int | str) -> Array | bytes | int | str:
    if not isinstance(part, np.ndarray):
        return rng.choice((0, 1, -1, 1 << 30))
    match rng.randrange(4):
        case 0:
            return part.astype(rng.choice([*writer.CODES]))
        case 1:
            return part.reshape(-1)[: rng.randrange(part.size + 1)]
        case 2:
            return np.resize(part, [rng.randrange(5) for _ in range(rng.randrange(6))])
        case _:
            return np.full_like(part, rng.choice((0, 1, 127)))


CHANGES: tuple[Callable[[random.Random, Model], None], ...] = (
    _word,
    _number,
    _number,
    _fewer_words,
    _input,
    _input,
    _blob,
    _order,
    _type,
    _outputs,
    _weight,
    _weight,
)
