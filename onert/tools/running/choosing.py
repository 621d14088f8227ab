"""Load and compile the model that the arguments name, with their compiler options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import onert
from onert.backend import Program
from onert.compiler import Options
from onert.frontend.format import InputShapes, ranks_are_missing
from onert.ir import BackendError, ModelError
from onert.ir.process import imports
from onert.tools import inputs
from onert.tools.arguments import CODEGEN, backend_names, shapes, wants_h5

from .feeding import is_given, is_open

T = TypeVar("T")


def loaded(options: argparse.Namespace) -> onert.Package:
    """The model. With --random-weights, a TNN structure with random weights."""
    if options.random_weights is None:
        return _of_ranks(options, choices(options)["input_shapes"])
    found: onert.Package = imports.module("onert.frontend.tnn").load(
        options.model, random_weights=options.random_weights
    )
    return found


def _of_ranks(options: argparse.Namespace, given: InputShapes) -> onert.Package:
    """The model. Ranks that it leaves open are those of the given shapes, or of the arrays of --load."""
    try:
        return onert.load(options.model, given)
    except ModelError as error:
        if given or options.load is None or not ranks_are_missing(error):
            raise
    return onert.load(options.model, inputs.archive_shapes(options.load))


def generated(options: argparse.Namespace, package: onert.Package) -> str:
    """Compile the model ahead of time with the backend that -c names. Returns a message with the path."""
    if options.codegen != CODEGEN:
        raise BackendError(
            f"-c is {options.codegen}, but the only backend that generates code ahead of time is {CODEGEN}"
        )
    bundled = partial(
        onert.bundle,
        package,
        options.cpath or Path(options.model).resolve().with_suffix(f".{CODEGEN.removesuffix('-gen')}"),
        signatures=() if options.signature is None else (options.signature,),
    )
    files = _with_shapes(options, package, lambda shapes: bundled(shapes=shapes))
    return f"code for {files.target} is written to {next(iter(files.paths.values())).parent}"


def compiled(options: argparse.Namespace, package: onert.Package, asked: Options) -> Program:
    """The program. If all inputs are random and some shapes are dynamic, it is compiled for suitable sizes."""
    program = onert.compile(package, asked, profiling=False)
    if is_given(options) or options.shape_run is not None or not any(map(is_open, program.inputs)):
        return program
    again = partial(onert.compile, package, asked, profiling=False)
    return _with_shapes(options, package, lambda shapes: again(input_shapes=shapes))


def measured_backends(options: argparse.Namespace, package: onert.Package, chosen: Options) -> list[str]:
    """The lines of `profile_backends`, with suitable sizes for dynamic dimensions."""
    measured = imports.module("onert.tools.reports.profiling").profile_backends
    return _with_shapes(options, package, lambda shapes: list(measured(package, chosen.choose(input_shapes=shapes))))


def _with_shapes(options: argparse.Namespace, package: onert.Package, made: Callable[[Any], T]) -> T:
    """Call `made` with the given shapes, and with suitable sizes for the remaining dynamic dimensions."""
    chosen = imports.module("onert.tools.open_shapes")  # only models with open shapes need it
    given = choices(options)["input_shapes"]
    found: T = chosen.compiled_with(package, options.signature, given, made)
    return found


def shapes_to_run(options: argparse.Namespace) -> dict[int | str, tuple[int, ...]]:
    """The input shapes of --shape_run, set before the first run; empty if not given."""
    if wants_h5(options.shape_run):
        return inputs.hdf5_shapes(options.load)
    return shapes(options.shape_run, "--shape_run")


def choices(options: argparse.Namespace) -> dict[str, Any]:
    """The compiler options given on the command line; the others come from the environment."""
    prepared = shapes(options.shape_prepare, "--shape_prepare")
    if wants_h5(options.shape_prepare):
        prepared = inputs.hdf5_shapes(options.load)
    chosen: dict[str, Any] = {"input_shapes": prepared}
    if options.backends is not None:
        chosen["backends"] = backend_names(options.backends)
    for name in ("executor", "num_threads", "precision", "signature", "tune"):
        if getattr(options, name) is not None:
            chosen[name] = getattr(options, name)
    return chosen
