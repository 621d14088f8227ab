"""What an application calls."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from attrs import fields

from onert import compiler, frontend
from onert.backend import Program
from onert.backend.registry import load_backends
from onert.compiler import Options
from onert.ir import CompileError, ModelError, Package
from onert.ir.process import imports

Source = str | os.PathLike[str] | bytes | bytearray | memoryview


def load(source: Source) -> Package:
    """A model file (.tflite, .circle, .tnnproto), an nnpackage (directory or zip), or a model's bytes.

    ModelError if the file is malformed or breaks a rule of its format, or where a package's configuration sets what
    only the user may set.
    """
    content = _content(source)
    package = frontend.load(content, compiler.known)
    try:
        if package.config:
            compiler.package_options(package.config)
    except ModelError as error:
        name = str(content) if isinstance(content, Path) else f"{len(content)} bytes"
        raise ModelError(f"{name}: {error}") from error
    compiler.expect(package)
    return package


def _content(source: object) -> Path | bytes:
    """Where a model lies, or the model; ModelError for anything that is neither."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, bytearray | memoryview):
        return bytes(source)
    try:
        path = os.fspath(source)  # type: ignore[call-overload]
    except TypeError as error:
        raise ModelError(f"a model is loaded from a path or from bytes, not from a {type(source).__name__}") from error
    return Path(os.fsdecode(path))


def compile(package: Package, options: Options | None = None, **overrides: Any) -> Program:  # noqa: A001
    """The program of a package.

    `options` default to what the environment says; `overrides` are fields of `Options` that go over both. CompileError
    where the model cannot be compiled with these options, BackendError if a backend fails or none of those that are
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
        imports.module("onert.runtime.measuring").record(package, backends, chosen)
        options = options.choose(profiling=False)
    program = compiler.compile(package, options, backends)
    if chosen.log:
        sys.stderr.write(f"{program.describe()}\n")
    return program
