"""The values of the inputs: from the files named in the arguments, otherwise random."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from attrs import evolve

import onert
from onert.backend import TensorInfo
from onert.backend.tensor_names import offered, position_named
from onert.frontend.metadata import ModelMetadata
from onert.ir import Array, ExecutionError, quantize
from onert.ir.process import imports
from onert.tools import inputs
from onert.tools.exits import UsageError


def is_random(options: argparse.Namespace) -> bool:
    """Whether each run gets new random inputs."""
    return not (options.fixed_input or is_given(options))


def is_given(options: argparse.Namespace) -> bool:
    """Whether values are given for at least one input."""
    return bool(options.input or options.load or options.load_raw or options.text)


def is_open(info: TensorInfo) -> bool:
    """Whether an input has dynamic dimensions without usable sizes. A dynamic batch of one is usable."""
    return None in info.shape or any(
        size is None and info.shape[axis] == 1 for axis, size in enumerate(info.open_shape) if axis
    )


def feed(
    options: argparse.Namespace, package: onert.Package, execution: onert.Execution, metadata: ModelMetadata
) -> tuple[inputs.Feed, int]:
    """The values of every input, and the batch size.

    Unless options set shapes, the arrays of --load do. Other dynamic inputs get sizes consistent with these.
    """
    infos = execution.program.inputs
    found: dict[int, inputs.InputValue] = {}
    if options.load is not None:
        arrays = inputs.archive(options.load, infos)
        found = {i: inputs.InputValue(array, str(options.load)) for i, array in enumerate(arrays)}
        if options.shape_prepare is None and options.shape_run is None:
            for i, array in enumerate(arrays):
                execution.set_input_shape(i, array.shape)
            infos = execution.program.inputs
    elif options.load_raw is not None:
        for i, info in enumerate(infos):
            path = Path(f"{options.load_raw}.{i}")
            reading = _reading(options, metadata, i)
            array_or_file = inputs.InputValue(inputs.raw(path, info), str(path)) if path.is_file() else None
            found[i] = array_or_file or inputs.from_file(path, info, reading)
    streams, batch = _streams(options, infos, metadata)
    for text in options.text:
        position, words = _named_text(text, infos)
        if position in streams:
            raise UsageError(f"--text and --input both give input {infos[position].name!r}, expected one")
        streams[position] = inputs.Stream(iter([inputs.text(words.encode(), "--text", infos[position])]))
    if options.force_float:
        found = {i: evolve(one, array=_stored(infos[i], one.array)) for i, one in found.items()}
    given = found.keys() | streams.keys()
    if options.shape_run is None and any(is_open(info) for i, info in enumerate(infos) if i not in given):
        shapes = {i: one.array.shape for i, one in found.items()}
        for i, each in streams.items():
            first = next(each.items, None)
            if first is not None:
                shapes[i] = first.array.shape
                streams[i] = evolve(each, items=chain([first], each.items))
        _settle(package, options.signature, execution, shapes)
        infos = execution.program.inputs
    rng = np.random.default_rng(options.seed)
    for i, info in enumerate(infos):
        if i in streams:
            if options.force_float:
                items, info_of = streams[i].items, infos[i]
                streams[i] = evolve(streams[i], items=(evolve(g, array=_stored(info_of, g.array)) for g in items))
            continue
        one = found.get(i) or inputs.InputValue(inputs.random(info, rng), f"random numbers, seed {options.seed}")
        streams[i] = inputs.Stream(iter([one]))
    return inputs.feed(streams, options.limit), batch


def _settle(
    package: onert.Package, signature: str | None, execution: onert.Execution, shapes: dict[int, tuple[int, ...]]
) -> None:
    """Set dynamic inputs that are not in `shapes` to sizes that are consistent with it."""
    for i, info in enumerate(execution.program.inputs):
        if i not in shapes and not is_open(info):
            shapes[i] = tuple(size or 1 for size in info.shape)

    def reshape(wanted: Mapping[int, tuple[int, ...]]) -> None:
        for position, shape in wanted.items():
            execution.set_input_shape(position, shape)

    imports.module("onert.tools.open_shapes").compiled_with(package, signature, shapes, reshape)


def _streams(
    options: argparse.Namespace, infos: Sequence[TensorInfo], metadata: ModelMetadata
) -> tuple[dict[int, inputs.Stream], int]:
    """The streams of --input by position, and the batch size of the one with several items."""
    named: dict[int, str] = {}
    unnamed: list[str] = []
    for item in options.input:
        name, equals, file = item.partition("=")
        if not equals or (position_of(name, infos) is None and (item == inputs.PIPED or os.path.exists(item))):
            unnamed.append(item)
            continue
        position = position_of(name, infos)
        if position is None:
            raise ExecutionError(f"there is no input {name!r}, expected one of {offered(infos)}")
        if position in named:
            raise UsageError(f"--input names input {infos[position].name!r} twice")
        named[position] = file
    given: dict[int, list[str]] = {position: [file] for position, file in named.items()}
    if unnamed:
        given[_taker(unnamed[0], infos, named)] = unnamed
    streams: dict[int, inputs.Stream] = {}
    batch = 1
    for position, paths in given.items():
        info = infos[position]
        if options.shape_prepare is not None or options.shape_run is not None:
            info = evolve(info, signature_shape=None)
        is_several = position == max(given, key=lambda at: len(given[at]))
        single, size = inputs.one_of(info, options.batch if is_several else None)
        batch = max(batch, size)
        streams[position] = inputs.stream(paths, single, _reading(options, metadata, position))
    return streams, batch


def _taker(path: str, infos: Sequence[TensorInfo], named: dict[int, str]) -> int:
    """The input that a file without NAME= goes to: the only one left, or the only one that accepts its kind."""
    free = [i for i in range(len(infos)) if i not in named]
    suffix = Path(path).suffix.lower()
    if len(free) > 1:
        if suffix in inputs.SOUNDS:
            free = [i for i in free if inputs.takes_sound(infos[i])]
        elif suffix in inputs.TEXTS:
            free = [i for i in free if inputs.takes_text(infos[i])]
        elif suffix != ".npy":
            planes = {i: plane for i in free if (plane := inputs.plane_of(infos[i])) is not None}
            free = list(planes)
            if len(free) > 1:  # a single row or column is rarely a picture
                free = [i for i, plane in planes.items() if 1 not in (plane.height, plane.width)]
    if len(free) != 1:
        raise ExecutionError(f"{path} could go to any of the inputs {offered(infos)}, expected --input NAME={path}")
    return free[0]


def _reading(options: argparse.Namespace, metadata: ModelMetadata, position: int) -> inputs.ReadSettings:
    """How to read files for an input, from the options and the metadata."""
    fit = inputs.Fit(options.resize) if options.resize else None
    exported = metadata.letterbox or bool(metadata.task)
    return inputs.ReadSettings(
        options.image_mode or ("0to1" if exported else None),
        options.sample_rate,
        options.start,
        fit or (inputs.Fit.LETTERBOX if metadata.letterbox else inputs.Fit.STRETCH),
        metadata.image_size,
        metadata.input(position),
    )


def position_of(name: str, infos: Sequence[TensorInfo]) -> int | None:
    """An input by one of its names, or by its number; None if there is none."""
    found = position_named(name, infos)
    if found is None and name.isdecimal() and len(name) < 10 and int(name) < len(infos):
        found = int(name)
    return found


def _named_text(item: str, infos: Sequence[TensorInfo]) -> tuple[int, str]:
    """The input and the text of a --text: `NAME=TEXT`, or just TEXT if exactly one input takes text."""
    name, equals, words = item.partition("=")
    position = position_of(name, infos) if equals else None
    if position is not None:
        return position, words
    takers = [i for i, info in enumerate(infos) if inputs.takes_text(info)]
    if len(takers) != 1:
        raise ExecutionError(
            f"{len(takers)} inputs take text, expected one, or --text NAME=TEXT; the inputs are {offered(infos)}"
        )
    return takers[0], item


def _stored(info: TensorInfo, array: Array) -> Array:
    """Quantise real numbers for a quantised input; other arrays are returned unchanged."""
    if info.quantization is None or array.dtype.kind != "f":
        return array
    return quantize(array, info.quantization, info.dtype)
