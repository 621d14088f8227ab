"""What an application calls."""

from __future__ import annotations

import importlib
import sys
from os import PathLike
from pathlib import Path
from typing import Any

from attrs import fields

from onert import compiler, frontend
from onert.backend import Program
from onert.backend.registry import load_backends
from onert.compiler import Options
from onert.ir import CompileError, Package


def load(source: str | PathLike[str] | bytes) -> Package:
    """A model file (.tflite, .circle), an nnpackage (directory or zip), or a model's bytes; known by its content.

    ModelError where the file is malformed or breaks a rule of its format.
    """
    package = frontend.load(source if isinstance(source, bytes) else Path(source), compiler.known)
    compiler.expect(package)
    return package


def compile(package: Package, options: Options | None = None, **overrides: Any) -> Program:  # noqa: A001
    """The program of a package.

    `options` default to what the environment says; `overrides` are fields of `Options` that go over both. CompileError
    where the model cannot be compiled with these options, BackendError where a backend fails or none of those that are
    named can be loaded. With `profiling`, every operation is measured on these backends before.
    """
    unknown = overrides.keys() - {f.name for f in fields(Options)}
    if unknown:
        raise CompileError(f"there is no option {', '.join(sorted(unknown))}")
    if options is None:
        options = Options.from_environment(**overrides)
    elif overrides:
        options = options.choose(**overrides)
    chosen = options.with_config(package.config)
    backends = load_backends(chosen.backends)
    if chosen.profiling:
        importlib.import_module("onert.runtime.measuring").record(package, backends, chosen)
        options = options.choose(profiling=False)
    program = compiler.compile(package, options, backends)
    if chosen.log:
        sys.stderr.write(f"{program.describe()}\n")
    return program
