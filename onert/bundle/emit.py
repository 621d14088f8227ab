"""Create a bundle's files from programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Sequence as Listed
from pathlib import Path

from attrs import evolve

from onert import compiler
from onert.backend import Backend, Blueprint, EmitsObject, Kernel, Program, Sequence, Settings, TensorInfo
from onert.backend.evaluation.evaluating_kernel import EvaluatingKernel
from onert.backend.registry import load_backend
from onert.backend.tensor_names import offered, position_named
from onert.compiler.options import Options
from onert.ir import CallTypes, CompileError, Operation, OptionError, Package

from .header import header, initializer
from .layers import facts
from .macros import AREAS
from .names import apart, identifier, symbol, why_taken
from .plan import Plan, plan
from .request_types import Api, Files, Request, Source
from .variables import ALIGNMENT
from .write import write_all

BACKEND = "llvm"

_PARTS = ("config", "reset", "stop", "verify", "content_id", "weights", "hook", "version")
"""Suffixes of the names of a bundle's symbols other than entry points."""


def write(source: Source | Mapping[str, Source], directory: Path, request: Request) -> Files:
    """Write the requested bundle. Raises CompileError or BackendError if that is impossible."""
    return _written(_programs(source, request), directory, request, _name(source, request.name))


def _name(source: Source | Mapping[str, Source], name: str | None) -> str:
    if name is not None:
        return _symbol("name", name)
    first = next(iter(source.values()), None) if isinstance(source, Mapping) else source
    return symbol(first.name if first is not None and first.name else "bundle")


def _symbol(option: str, name: str) -> str:
    """A name that is used in C unchanged. Raises OptionError if C does not accept it."""
    if identifier(name) != name:
        raise OptionError(option, f"is {name!r}, expected a C identifier such as {symbol(name)!r}")
    why = why_taken(name)
    if why is not None:
        raise OptionError(option, f"is {name!r}, {why}; another name is {symbol(name)!r}")
    return name


def _programs(source: Source | Mapping[str, Source], request: Request) -> dict[str, Program]:
    """Programs by the symbols of their entry points."""
    for given in source.values() if isinstance(source, Mapping) else (source,):
        _require_source(given)
    name = _name(source, request.name)
    if isinstance(source, Mapping):
        if not source:
            raise CompileError("no program is given to bundle, expected at least one")
        return {_symbol("an entry point", key): _program(given, request, None) for key, given in source.items()}
    if len(request.signatures) < 2:
        symbol = _symbol("entry", request.entry) if request.entry is not None else name
        return {symbol: _program(source, request, next(iter(request.signatures), None))}
    found: dict[str, Program] = {}
    for key in request.signatures:
        found[apart(f"{request.entry or name}_{identifier(key)}", found)] = _program(source, request, key)
    return found


def _require_source(given: object) -> None:
    """Raises CompileError unless given a package or a program."""
    if not isinstance(given, Package | Program):
        loaded = f": onert.load({given!r})" if isinstance(given, str) else ""
        raise CompileError(f"bundle is given a {type(given).__name__}, expected a package or a program{loaded}")


def _program(source: Source, request: Request, signature: str | None) -> Program:
    """The program of one entry point; a package is compiled for the bundle's backend, without generating code."""
    if isinstance(source, Program):
        if signature is not None:
            raise CompileError("signatures can only be chosen from a package, not from a program")
        if not request.shapes:
            return source
        return source.specialize({_position(source.inputs, key): shape for key, shape in request.shapes.items()})
    backends = (_Unmade(load_backend(BACKEND)), load_backend("reference"), load_backend("builtin"))
    options = Options(
        backends=tuple(backend.name for backend in backends[:2]),
        signature=signature,
        input_shapes=request.shapes,
        num_threads=1,
        disabled_passes=frozenset({"cut"}),
    )
    return compiler.compile(evolve(source, config={}), options, backends)


class _Unmade(Backend):
    """The bundle's backend as the compiler sees it: it supports the same operations, so that they are decomposed and
    loops enclosed as in process, but generates no code.

    A bundle's code is emitted for whole entry points and for other targets.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.name = backend.name  # type: ignore[misc]

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        return self._backend.supports(operation, types)

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        return EvaluatingKernel(sequence)

    def fingerprint(self, settings: Settings) -> str | None:
        own = self._backend.fingerprint(settings)
        return None if own is None else f"unmade {own}"

    def keep(self, kernel: Kernel) -> tuple[()]:
        return ()


def _position(infos: Listed[TensorInfo], key: int | str) -> int:
    found = position_named(key, infos) if isinstance(key, str) else key
    if found is None or not 0 <= found < len(infos):
        raise CompileError(f"there is no input {key!r}, expected one of {offered(infos)}")
    return found


def _written(programs: Mapping[str, Program], directory: Path, request: Request, name: str) -> Files:
    _require_apart(name, programs)
    backend = load_backend(BACKEND)
    if not isinstance(backend, EmitsObject):
        raise CompileError(f"backend {backend.name} cannot produce object files")
    options = Options(num_threads=request.threads, precision=request.precision)
    planned = plan(programs, backend, options, request.overlap, share=request.share)
    static, dynamic = request.api is not Api.DYNAMIC, request.api is not Api.STATIC
    blueprint = _blueprint(name, planned, request, dynamic)
    made = backend.emit_object(blueprint, options.settings)
    layers = tuple(facts(planned, made.layers))
    named = layers if request.steps or request.instrument else ()
    contents: dict[str, bytes] = {
        "o": made.code,
        **({} if request.embed_weights else {"weights": made.constants}),
        "h": header(name, planned, made, blueprint, named).encode(),
    }
    if static and not request.embed_weights:
        contents["weights.bin"] = made.constants
        contents["weights.txt"] = initializer(made.constants).encode()
    suffixes = {"asm": "s", "ir": "ll"}
    contents |= {suffixes[kind]: text.encode() for kind, text in made.listings.items()}
    paths = write_all(directory, {f"{name}.{suffix}": content for suffix, content in contents.items()})
    return Files(
        name,
        dict(zip(contents, paths, strict=True)),
        len(made.constants),
        planned.mutable_bytes,
        made.activation_bytes,
        made.target,
        made.versions,
        layers,
        made.footprint,
        made.notes,
    )


def _require_apart(name: str, entries: Collection[str]) -> None:
    """Raises OptionError if an entry point has the name of something else in the object or in the header."""
    own = {f"{name}_{what}": f"the bundle's {what}" for what in _PARTS}
    own |= {f"{name.upper()}_{what}": "a macro" for what in (*(f"{area}_MEM_SIZE" for area in AREAS), "MEM_ALIGN")}
    own |= {f"{entry}_step": f"the entry point {entry} that runs layer by layer" for entry in entries}
    for entry in entries:
        if entry in own:
            raise OptionError("entry", f"is {entry!r}, which is the name of {own[entry]}")


def _blueprint(name: str, planned: Plan, request: Request, configuration: bool) -> Blueprint:
    return Blueprint(
        name,
        planned.entries,
        tuple(dict.fromkeys(variable.symbol for variable in planned.variables)),
        planned.mutable_bytes,
        planned.activation_bytes,
        request.target,
        ALIGNMENT,
        configuration,
        request.listings,
        request.steps,
        request.instrument,
        request.embed_weights,
        request.report,
    )
