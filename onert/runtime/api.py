"""`load` and `compile`, the functions that an application calls."""

from __future__ import annotations

import copyreg
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from attrs import evolve, fields, frozen

from onert import compiler, frontend
from onert.backend import Program
from onert.backend.holders import GC_PAUSED
from onert.backend.registry import load_backends
from onert.compiler import Options
from onert.frontend.format import InputShapes
from onert.ir import CompileError, ModelError, Package
from onert.ir.content import Content
from onert.ir.process import imports
from onert.ir.value import ByIdentity

if TYPE_CHECKING:
    from onert.compiler.settings.option_fields import OptionFields

Source = str | os.PathLike[str] | bytes | bytearray | memoryview


@frozen(eq=False)
class Origin(ByIdentity):
    """A program's `specialize`, with the package and the options from which it was compiled.

    A program is pickled as these two: unpickling compiles again, or loads the program from the cache.
    """

    specialized: Callable[[Mapping[int, tuple[int, ...]]], Program]
    package: Package
    options: Options

    def __call__(self, shapes: Mapping[int, tuple[int, ...]]) -> Program:
        return self.specialized(shapes)


def load(source: Source, input_shapes: InputShapes | None = None) -> Package:
    """Read a model: a file (.tflite, .circle, .onnx, .ort, .tnnproto, .flow, .litertlm, .task), an nnpackage, or bytes.

    An nnpackage is a directory or a zip archive. `input_shapes`, by name or number, decide ranks in an ONNX model whose
    inputs declare none; `compile` fixes sizes. Raises ModelError if the file is malformed or breaks a rule of its
    format, or if a package's configuration sets an option that only the user may set.
    """
    content = _content(source)
    hold = GC_PAUSED.hold()
    with hold.ended(), hold.ended(), hold:
        package = frontend.load(content, compiler.is_cached, input_shapes)
        _check_config(package, content)
        compiler.expect(package)
    return package


def _check_config(package: Package, content: Path | bytes) -> None:
    """Raises ModelError if a package's configuration sets an option that it may not set."""
    try:
        if package.config:
            compiler.package_options(package.config)
    except ModelError as error:
        name = str(content) if isinstance(content, Path) else f"{len(content)} bytes"
        raise ModelError(f"{name}: {error}") from error


def _content(source: object) -> Path | bytes:
    """The path of a model, or its content. Raises ModelError for anything else."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, bytearray | memoryview):
        return bytes(source)
    try:
        path = os.fspath(source)  # type: ignore[call-overload]
    except TypeError as error:
        raise ModelError(f"load is given a {type(source).__name__}, expected a path or bytes") from error
    return Path(os.fsdecode(path))


def compile(  # noqa: A001
    package: Package, options: Options | None = None, **overrides: Unpack[OptionFields]
) -> Program:
    """Compile a package to a program.

    `options` default to those of the environment; `overrides` are fields of `Options` and take precedence. Raises
    CompileError if the model cannot be compiled with these options, and BackendError if a backend fails or none of the
    named ones can be loaded. With `profiling`, every operation is first measured on these backends.
    """
    _require_kinds(package, options)
    unknown = sorted(overrides.keys() - {f.name for f in fields(Options)})
    if unknown:
        get_close_matches = imports.module("difflib").get_close_matches
        near = ", ".join(n for u in unknown for n in get_close_matches(u, [f.name for f in fields(Options)], 1))
        raise CompileError(f"there is no option {', '.join(unknown)}{near and '; the most similar are ' + near}")
    if options is None:
        options = Options.from_environment(**overrides)
    elif overrides:
        options = options.choose(**overrides)
    chosen = options.with_config(package.config)
    prefetched = compiler.prefetch(package)
    hold = GC_PAUSED.hold()
    with hold.ended(), hold.ended(), hold:
        backends = load_backends(chosen.backends)
    if chosen.profiling:
        imports.module("onert.runtime.measuring").record(package, backends, chosen)
        options = options.choose(profiling=False)
    program = compiler.compile(package, options, backends, prefetched)
    if chosen.log:
        sys.stderr.write(f"{program.describe()}\n")
    return evolve(program, specialize=Origin(program.specialize, package, options))


def _require_kinds(package: object, options: object) -> None:
    """Raises CompileError unless the arguments of `compile` are a package and options."""
    if not isinstance(package, Package):
        given = repr(package) if isinstance(package, str | os.PathLike) else "..."
        raise CompileError(
            f"compile is given a {type(package).__name__}, expected a package: onert.compile(onert.load({given}))"
        )
    if options is not None and not isinstance(options, Options):
        raise CompileError(
            f"compile is given a {type(options).__name__} as its options, expected onert.Options or keywords such as "
            "num_threads=1"
        )


def _pickled(program: Program) -> tuple[Callable[[Package, Options], Program], tuple[Package, Options]]:
    """A program as the package and options from which it was compiled. Raises CompileError if these are unknown."""
    if not isinstance(program.specialize, Origin):
        raise CompileError(
            "only a program returned by onert.compile can be pickled; for other shapes, compile with input_shapes"
        )
    return compile, (program.specialize.package, program.specialize.options)


copyreg.pickle(Program, _pickled)
copyreg.pickle(Content, lambda content: (_content_again, (bytes(content.data),)))


def _content_again(data: bytes) -> Content:
    """Unpickle the content of a model."""
    content = frontend.load(data, compiler.is_cached).content
    if content is None:
        raise ModelError("the pickled model needs custom operators or formats that are not registered in this process")
    return content
