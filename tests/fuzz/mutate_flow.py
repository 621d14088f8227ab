"""Format-aware mutations of flow files: sizes, types, names, attributes and elements."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
from attrs import evolve
from fuzz.batch import bytes_changed

from onert.frontend.flow.file import FlowFile, Function, Operation, Variable, decode, encode
from onert.frontend.flow.table import TABLE
from onert.frontend.flow.table.assignments import ASSIGNMENTS

Change = Callable[[random.Random, FlowFile], FlowFile]

SIZES = (-1, 0, 1, 2, 3, 7, 64, 1 << 16, (1 << 31) - 1)
NUMBERS = (-(2**31), -129, -2, -1, 0, 1, 2, 3, 7, 64, 255, 1 << 16, 2**31 - 1)
TYPES = ("float32", "&float32", "int8", "int32", "int64", "bool", "float64", "string", "void", "resource", "", "text")
VALUES = ("", "0", "1", "-1", "2", "99", "[1,0]", "[]", "[2,,3]", "[0,0]", "true", "x", "9" * 30, "@0=Neg(%0)", "@0=%9")
NAMES = ("axis", "keepdims", "perm", "depth", "batch", "pooled", "transpose_a", "shape", "expr", "task", "output", "N")


def mutant(seed: int, content: bytes) -> bytes:
    """A file with one to three changes, determined by the seed."""
    rng = random.Random(seed)
    if rng.random() < 0.25:
        return bytes_changed(rng, content, 4)
    flow = decode(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        flow = rng.choice(CHANGES)(rng, flow)
    return b"".join(encode(flow))


def _one(rng: random.Random, texts: tuple[str, ...], by: str) -> tuple[str, ...]:
    """The texts with one replaced, removed, duplicated or added."""
    found = list(texts)
    at = rng.randrange(len(found)) if found else 0
    kind = rng.randrange(4)
    if kind == 0 or not found:
        found.append(by)
    elif kind == 1:
        found[at] = by
    elif kind == 2:
        del found[at]
    else:
        found.append(found[at])
    return tuple(found)


def _with_variable(rng: random.Random, flow: FlowFile, change: Callable[[Variable], Variable]) -> FlowFile:
    at = rng.randrange(max(1, len(flow.variables)))
    return evolve(flow, variables=tuple(change(v) if i == at else v for i, v in enumerate(flow.variables)))


def _with_operation(rng: random.Random, flow: FlowFile, change: Callable[[Operation], Operation]) -> FlowFile:
    at = rng.randrange(max(1, len(flow.operations)))
    return evolve(flow, operations=tuple(change(o) if i == at else o for i, o in enumerate(flow.operations)))


def _some_name(rng: random.Random, flow: FlowFile) -> str:
    return rng.choice([*(v.name for v in flow.variables), *(o.name for o in flow.operations), "nothing"])


def change_size(rng: random.Random, flow: FlowFile) -> FlowFile:
    def change(v: Variable) -> Variable:
        shape = list(v.shape) or [1]
        shape[rng.randrange(len(shape))] = rng.choice(SIZES)
        return evolve(v, shape=tuple(shape))

    return _with_variable(rng, flow, change)


def change_rank(rng: random.Random, flow: FlowFile) -> FlowFile:
    return _with_variable(
        rng, flow, lambda v: evolve(v, shape=v.shape[:-1] if v.shape and rng.random() < 0.5 else (*v.shape, 1))
    )


def change_type(rng: random.Random, flow: FlowFile) -> FlowFile:
    return _with_variable(rng, flow, lambda v: evolve(v, type=rng.choice(TYPES)))


def change_flags(rng: random.Random, flow: FlowFile) -> FlowFile:
    return _with_variable(rng, flow, lambda v: evolve(v, flags=rng.choice((0, 1, 2, 4, 8, 3, 64, 128, 136, 512, -1))))


def change_data(rng: random.Random, flow: FlowFile) -> FlowFile:
    """Other elements, fewer, more, or none: sizes, axes and indices are stored there too."""

    def change(v: Variable) -> Variable:
        raw = np.frombuffer(bytes(v.data), np.uint8).copy()
        if not len(raw) or rng.random() < 0.3:
            return evolve(v, data=b"" if rng.random() < 0.5 else bytes(rng.randrange(64)))
        value = np.array([rng.choice(NUMBERS)], np.int32).view(np.uint8)
        at = rng.randrange(0, len(raw), 4)
        raw[at : at + 4] = value[: len(raw[at : at + 4])]
        return evolve(v, data=raw.tobytes())

    return _with_variable(rng, flow, change)


def change_variable_name(rng: random.Random, flow: FlowFile) -> FlowFile:
    return _with_variable(rng, flow, lambda v: evolve(v, name=_some_name(rng, flow)))


def change_alias(rng: random.Random, flow: FlowFile) -> FlowFile:
    return _with_variable(rng, flow, lambda v: evolve(v, aliases=(_some_name(rng, flow),)))


def change_operation_type(rng: random.Random, flow: FlowFile) -> FlowFile:
    return _with_operation(rng, flow, lambda o: evolve(o, type=rng.choice((*TABLE, *ASSIGNMENTS, "Unheard"))))


def change_inputs(rng: random.Random, flow: FlowFile) -> FlowFile:
    return _with_operation(rng, flow, lambda o: evolve(o, inputs=_one(rng, o.inputs, _some_name(rng, flow))))


def change_outputs(rng: random.Random, flow: FlowFile) -> FlowFile:
    return _with_operation(rng, flow, lambda o: evolve(o, outputs=_one(rng, o.outputs, _some_name(rng, flow))))


def change_attribute(rng: random.Random, flow: FlowFile) -> FlowFile:
    """Another value for an existing attribute or for one that other operations use."""

    def change(o: Operation) -> Operation:
        name = rng.choice([*(n for n, _ in o.attributes), rng.choice(NAMES)])
        return evolve(o, attributes=(*o.attributes, (name, rng.choice(VALUES))))

    return _with_operation(rng, flow, change)


def change_function(rng: random.Random, flow: FlowFile) -> FlowFile:
    if not flow.functions:
        return flow
    at = rng.randrange(len(flow.functions))
    one = flow.functions[at]
    other = evolve(one, operations=_one(rng, one.operations, _some_name(rng, flow)))
    return evolve(flow, functions=tuple(other if i == at else f for i, f in enumerate(flow.functions)))


def add_function(rng: random.Random, flow: FlowFile) -> FlowFile:
    return evolve(flow, functions=(Function(_some_name(rng, flow)), *flow.functions))


CHANGES: tuple[Change, ...] = (
    change_size,
    change_rank,
    change_type,
    change_flags,
    change_data,
    change_data,
    change_variable_name,
    change_alias,
    change_operation_type,
    change_operation_type,
    change_inputs,
    change_outputs,
    change_attribute,
    change_attribute,
    change_function,
    add_function,
)
