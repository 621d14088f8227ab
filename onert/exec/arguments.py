"""Checks of a caller's arguments (names, inputs, output buffers), and copies of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from onert.backend import Program, TensorInfo
from onert.backend.tensor_names import offered, position_named
from onert.ir import Array, ExecutionError
from onert.ir import shape as shapes


def elements(info: TensorInfo, given: Any) -> Array:
    """The value given for an input, as an array: numbers and lists are converted, strings are encoded as UTF-8.

    Raises ExecutionError if it cannot be an array, or if its element type is not the input's.
    """
    array = np.asarray(given, info.dtype.numpy) if isinstance(given, int | float | bool | list) else given
    if isinstance(array, np.generic):
        array = np.asarray(array)
    if not isinstance(array, np.ndarray):
        raise ExecutionError(f"input {info.name!r} is given a {type(given).__name__}, expected a NumPy array")
    if info.dtype.is_handle and array.dtype.kind in "SU":
        array = np.array([x if isinstance(x, bytes) else x.encode() for x in array.ravel().tolist()], object).reshape(
            array.shape
        )
    if array.dtype != info.dtype.numpy:
        raise ExecutionError(
            f"input {info.name!r} is given elements of type {array.dtype}, expected {info.dtype.numpy}"
        )
    return array


def fitting(info: TensorInfo, declared: TensorInfo, given: Any) -> Array:
    """The value given for an input, as an array of the input's current shape or one that its declaration allows.
    Raises ExecutionError for others."""
    array = elements(info, given)
    if array.shape != info.shape and not allows(declared, array.shape):
        allowed = declared.open_shape if declared.is_open else info.shape
        found = f"input {info.name!r} is given shape {shapes.text(array.shape)}"
        raise ExecutionError(f"{found}, expected {shapes.text(allowed)}; set_input_shape changes it")
    return array


def allows(declared: TensorInfo, shape: tuple[int, ...]) -> bool:
    """Whether an array may change an input's shape, because the model leaves the dimensions open."""
    return declared.is_open and shapes.compatible(declared.open_shape, shape)


def is_in_place(array: Array) -> bool:
    """Whether kernels can read and write an array in place."""
    return bool(array.flags.c_contiguous and array.flags.aligned)


def require_holds(info: TensorInfo, buffer: object) -> None:
    """Raises ExecutionError unless an output fits into a buffer: same type and shape, contiguous, writable."""
    if not isinstance(buffer, np.ndarray):
        raise ExecutionError(f"output {info.name!r} is given a {type(buffer).__name__}, expected a NumPy array")
    if not shapes.is_static(info.shape):
        raise ExecutionError(
            f"output {info.name!r} has shape {shapes.text(info.shape)}, known only at run time; get_output reads it"
        )
    if buffer.dtype != info.dtype.numpy or buffer.shape != info.shape:
        raise ExecutionError(
            f"output {info.name!r} is given a buffer of {buffer.dtype}{shapes.text(buffer.shape)}, expected "
            f"{info.dtype.numpy}{shapes.text(info.shape)}"
        )
    if not (is_in_place(buffer) and buffer.flags.writeable):
        raise ExecutionError(f"output {info.name!r} is given a buffer that is not contiguous or not writeable")


_PLAIN = frozenset({int})


def whole_shape(name: str, shape: object) -> tuple[int, ...]:
    """The shape given for an input. Raises ExecutionError if it is not a sequence of integers."""
    if isinstance(shape, Iterable) and not isinstance(shape, str | bytes):
        dims = tuple(shape)
        if _PLAIN.issuperset(map(type, dims)):
            return dims
        if all(isinstance(d, int | np.integer) and not isinstance(d, bool) for d in dims):
            return tuple(map(int, dims))
    raise ExecutionError(f"input {name!r} is given shape {shape!r}, expected whole numbers such as (1, 8)")


def copied(array: Array, info: TensorInfo) -> Array:
    """An output's elements as the caller's own array. Raises ExecutionError if there is not enough memory."""
    try:
        return array.copy()
    except MemoryError as error:
        raise ExecutionError(f"not enough memory for a copy of output {info.name!r}, {array.nbytes} bytes") from error


Input = tuple[str, int, Array, int]
"""An input that `run` has set: its name, its operand, its buffer, and its position if that is the given array, or -1 if
arrays are copied to it."""


Reshaped = tuple[int, tuple[int, ...]]
"""The position of an input whose shape is not that of its buffer, and its shape."""


def given_again(
    run_inputs: Sequence[Input], inputs: Any, count: int
) -> tuple[Sequence[Array] | None, Sequence[Reshaped]]:
    """The given arrays in the order of `run_inputs`, and those with other shapes than their buffers.

    None instead of the arrays if they are not for the same `count` inputs as before, or differ from their buffers in
    more than the shape. This spares small models the full check of their inputs before each run.
    """
    if not run_inputs:
        return None, ()
    if type(inputs) is dict:
        arrays: Sequence[Any] = [inputs.get(name) for name, *_ in run_inputs]
    elif (type(inputs) is list or type(inputs) is tuple) and len(run_inputs) == count:
        arrays = inputs
    else:
        return None, ()
    if len(inputs) != len(run_inputs):
        return None, ()
    reshaped: list[Reshaped] = []
    for at, (_, _, mine, _) in enumerate(run_inputs):
        array = arrays[at]
        if type(array) is not np.ndarray or array.dtype != mine.dtype:
            return None, ()
        shape = array.shape
        if shape != mine.shape:
            reshaped.append((at, shape))
    return arrays, reshaped


def reusable(
    base: Program, changed: Mapping[int, tuple[int, ...]]
) -> tuple[Program, tuple[tuple[int, ...], ...]] | None:
    """The program that `base` reuses if some inputs, by position, have other shapes, and the shapes of all inputs; None
    if it has none, or if shapes are unknown."""
    given = tuple(changed.get(at, info.shape) for at, info in enumerate(base.inputs))
    if base.reuse is None or not all(map(shapes.is_static, given)):
        return None
    known = tuple(map(shapes.static, given))
    found = base.reuse(known)
    return None if found is None else (found, known)


def named(inputs: Any, infos: Sequence[TensorInfo]) -> list[tuple[int, Any]]:
    """Inputs given by name or in order, with their positions. Raises ExecutionError for others, or for duplicates."""
    if isinstance(inputs, Mapping):
        found = [(position_of("input", name, infos), array) for name, array in inputs.items()]
        if len({position for position, _ in found}) < len(found):
            raise ExecutionError(f"inputs are given twice, by two of their names: {', '.join(map(repr, inputs))}")
        return found
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Sequence):
        raise ExecutionError(
            f"run is given a {type(inputs).__name__}, expected a dictionary of arrays by name or a list of arrays"
        )
    if len(inputs) > len(infos):
        raise ExecutionError(f"{len(inputs)} inputs are given, expected {len(infos)}")
    return list(enumerate(inputs))


def position_of(side: str, name: object, infos: Sequence[TensorInfo]) -> int:
    """The position of an input or output given by name or position. Raises ExecutionError if there is none."""
    if type(name) is int and 0 <= name < len(infos):
        return name
    if isinstance(name, str):
        found = position_named(name, infos)
        if found is None:
            raise ExecutionError(f"there is no {side} {name!r}, expected one of {offered(infos)}")
        return found
    if isinstance(name, bool) or not isinstance(name, int | np.integer):
        raise ExecutionError(f"an {side} is named by a {type(name).__name__}, expected a name or a position")
    if not -len(infos) <= name < len(infos):
        raise ExecutionError(f"there is no {side} {name}, expected 0 to {len(infos) - 1}")
    return int(name) % len(infos)
