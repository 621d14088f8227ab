"""The model and the compiler's options that arguments name."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import onert
from onert.ir import BackendError
from onert.ir.process import imports
from onert.tools import inputs
from onert.tools.arguments import CODEGEN, backend_names, shapes, wants_h5


def loaded(options: argparse.Namespace) -> onert.Package:
    """The model; a TNN structure with random weights where these are asked for."""
    if options.random_weights is None:
        return onert.load(options.model)
    found: onert.Package = imports.module("onert.frontend.tnn").load(
        options.model, random_weights=options.random_weights
    )
    return found


def generated(options: argparse.Namespace, package: onert.Package) -> str:
    """The model compiled ahead of time by the backend that -c names; a line that says where."""
    if options.codegen != CODEGEN:
        raise BackendError(
            f"-c is {options.codegen}, but the only backend that generates code ahead of time is {CODEGEN}"
        )
    files = onert.bundle(
        package,
        options.cpath or Path(options.model).resolve().with_suffix(f".{CODEGEN.removesuffix('-gen')}"),
        shapes=choices(options)["input_shapes"],
        signatures=() if options.signature is None else (options.signature,),
    )
    return f"code for {files.target} is written to {next(iter(files.paths.values())).parent}"


def shapes_to_run(options: argparse.Namespace) -> dict[int | str, tuple[int, ...]]:
    """The input shapes to change to before the first run, where they are given."""
    if wants_h5(options.shape_run):
        return inputs.hdf5_shapes(options.load)
    return shapes(options.shape_run, "--shape_run")


def choices(options: argparse.Namespace) -> dict[str, Any]:
    """Compiler options that were given; the rest comes from the environment."""
    prepared = shapes(options.shape_prepare, "--shape_prepare")
    if wants_h5(options.shape_prepare):
        prepared = inputs.hdf5_shapes(options.load)
    chosen: dict[str, Any] = {"input_shapes": prepared}
    if options.backends is not None:
        chosen["backends"] = backend_names(options.backends)
    for name in ("executor", "num_threads", "signature"):
        if getattr(options, name) is not None:
            chosen[name] = getattr(options, name)
    return chosen
