"""Run a bundle from Python through its C entry points."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onert.backend import HOST, TensorInfo
from onert.backend.tensor_names import offered, position_named
from onert.ir import Array, ExecutionError

from .description import Description, read
from .variables import Role, Variable

_COMPILERS = ("cc", "gcc", "clang")


class Bundle:
    """A bundle in this process: its code, its constants, and one set of memory areas.

    It runs one call at a time; a second bundle made by `another` shares code and constants and may run concurrently.
    """

    def __init__(self, description: Description, library: ctypes.CDLL, constants: Array) -> None:
        self.description = description
        self._library = library
        self._constants = constants
        self._mutables = HOST.allocate(max(description.mutables, 1))
        self._activations = HOST.allocate(max(description.activations, 1))
        self._areas = tuple(area.ctypes.data for area in (constants, self._mutables, self._activations))
        self._functions = {entry: _function(library, entry) for entry in description.entries}
        self.reset()

    def reset(self) -> None:
        """Reset all state."""
        for variable in self.description.variables:
            if variable.role is Role.STATE:
                self._view(variable)[...] = variable.info.type.cleared

    def another(self) -> Bundle:
        """A bundle with the same code and constants, and its own memory areas and state."""
        return Bundle(self.description, self._library, self._constants)

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the entry points; `run` uses the first unless another is named."""
        return self.description.entries

    def inputs(self, entry: str | None = None) -> tuple[TensorInfo, ...]:
        return tuple(variable.info for variable in self._of(entry, Role.INPUT))

    def outputs(self, entry: str | None = None) -> tuple[TensorInfo, ...]:
        return tuple(variable.info for variable in self._of(entry, Role.OUTPUT))

    def array(self, name: str) -> Array:
        """The elements of an input, an output or a state by name, in place: writing to the array sets them."""
        infos = [variable.info for variable in self.description.variables]
        position = position_named(name, infos)
        if position is None:
            raise ExecutionError(f"the bundle has no variable {name!r}, expected one of {offered(infos)}")
        return self._view(self.description.variables[position])

    def call(self, entry: str | None = None) -> None:
        """Run an entry point on the current inputs. Raises ExecutionError with the code if it does not return 0."""
        name = self._entry(entry)
        code = self._functions[name](*self._areas)
        if code != 0:
            message = self.description.errors.get(code, "an element breaks a rule of the model")
            raise ExecutionError(f"{name} returned error code {code}: {message}")

    def stop(self) -> None:
        """End the threads of a multi-threaded bundle; the next call starts them again."""
        with contextlib.suppress(AttributeError):  # a bundle of one thread has no such function
            getattr(self._library, f"{self.description.name}_stop")()

    def run(self, inputs: Mapping[str, Any] | Sequence[Any] = (), entry: str | None = None) -> dict[str, Array]:
        """Set inputs by name or in order, run, and return all outputs by name as new arrays."""
        wanted = self._of(entry, Role.INPUT)
        given = self._named(wanted, inputs) if isinstance(inputs, Mapping) else self._ordered(wanted, inputs)
        for position, variable in enumerate(wanted):
            array = np.asarray(given[position])
            info = variable.info
            if array.dtype != info.dtype.numpy or array.shape != info.shape:
                raise ExecutionError(
                    f"input {info.name!r} is given {array.dtype}{list(array.shape)}, expected "
                    f"{info.dtype.numpy}{list(info.shape)}"
                )
            self._view(variable)[...] = array
        self.call(entry)
        return {variable.info.name: self._view(variable).copy() for variable in self._of(entry, Role.OUTPUT)}

    def _ordered(self, wanted: Sequence[Variable], given: Sequence[Any]) -> Sequence[Any]:
        if len(given) != len(wanted):
            raise ExecutionError(f"{len(given)} inputs are given, expected {len(wanted)}")
        return given

    def _named(self, wanted: Sequence[Variable], given: Mapping[str, Any]) -> Sequence[Any]:
        infos = [variable.info for variable in wanted]
        positions = {name: position_named(name, infos) for name in given}
        odd = sorted(repr(name) for name, position in positions.items() if position is None)
        odd += sorted(repr(info.name) for at, info in enumerate(infos) if at not in positions.values())
        if odd:
            raise ExecutionError(f"inputs {', '.join(odd)} are missing or unknown, expected {offered(infos)}")
        if len(positions) > len(infos):
            raise ExecutionError(f"inputs are given twice, by two of their names: {', '.join(map(repr, given))}")
        by_position = {position: given[name] for name, position in positions.items()}
        return [by_position[at] for at in range(len(infos))]

    def _of(self, entry: str | None, role: Role) -> list[Variable]:
        name = self._entry(entry)
        return [v for v in self.description.variables if v.entry == name and v.role is role]

    def _entry(self, entry: str | None) -> str:
        if entry is None:
            return self.entries[0]
        if entry not in self._functions:
            raise ExecutionError(f"the bundle has no entry point {entry!r}, expected one of {', '.join(self.entries)}")
        return entry

    def _view(self, variable: Variable) -> Array:
        return HOST.view(self._mutables, variable.offset, variable.info.type)


def load_bundle(directory: str | os.PathLike[str], name: str | None = None) -> Bundle:
    """Link and load the bundle in a directory; `name` chooses one if there are several.

    Raises ExecutionError if files are missing or do not belong together, or if the linker fails because the code is for
    another machine or not relocatable.
    """
    folder = Path(directory)
    headers = sorted(folder.glob("*.h")) if name is None else [folder / f"{name}.h"]
    if len(headers) != 1:
        found = ", ".join(header.stem for header in headers) or "none"
        raise ExecutionError(f"{folder} holds the bundles {found}, expected one, or a name that chooses one")
    description = read(headers[0])
    name = description.name
    library = _library(folder / f"{name}.o")
    held = _bytes(library, f"{name}_content_id", len(description.content))
    if held != description.content:
        raise ExecutionError(f"{name}.o and {name}.h were not made together: the object's content is {_hex(held)}")
    weights = _bytes(library, f"{name}_weights", description.constants) or _content(folder / f"{name}.weights")
    if len(weights) != description.constants:
        raise ExecutionError(
            f"{name}.weights has {len(weights)} bytes, expected {description.constants} as the header says"
        )
    if weights[-len(held) :] != held:
        raise ExecutionError(
            f"{name}.weights and {name}.o were not made together: its content is {_hex(weights[-16:])}"
        )
    constants = HOST.allocate(max(len(weights), 1))
    constants[: len(weights)] = np.frombuffer(weights, np.uint8)
    return Bundle(description, library, constants)


def _hex(content: bytes) -> str:
    return content.hex() or "missing"


def _bytes(library: ctypes.CDLL, symbol: str, size: int) -> bytes:
    """Bytes of an object's data; empty if it has no such symbol."""
    try:
        return bytes((ctypes.c_uint8 * size).in_dll(library, symbol))
    except ValueError:
        return b""


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ExecutionError(f"{path} cannot be read: {error.strerror or error}") from error


def _library(path: Path) -> ctypes.CDLL:
    """Link the object as a shared library and load it."""
    compiler = next((found for found in map(shutil.which, _COMPILERS) if found is not None), None)
    if compiler is None:
        raise ExecutionError(f"no linker is installed, expected one of {', '.join(_COMPILERS)}")
    with tempfile.TemporaryDirectory(prefix="onert-bundle-") as scratch:
        shared = Path(scratch) / f"{path.stem}.so"
        command = [compiler, "-shared", "-o", str(shared), str(path), "-lm", "-lpthread"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            message = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
            raise ExecutionError(f"{path} cannot be linked for this machine: {message}")
        try:
            return ctypes.CDLL(str(shared))
        except OSError as error:
            raise ExecutionError(f"{path} cannot be loaded: {error}") from error


def _function(library: ctypes.CDLL, symbol: str) -> Any:
    try:
        function = getattr(library, symbol)
    except AttributeError as error:
        raise ExecutionError(f"the object has no function {symbol}, which the header names") from error
    function.argtypes, function.restype = [ctypes.c_void_p] * 3, ctypes.c_int
    return function
