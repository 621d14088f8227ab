"""What compiled programs are found by: everything that decides what is compiled.

A key is a digest of named components. Each is here because a program would be another one if it were; a test changes
each of them alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from attrs import fields

import onert.ir
from onert.backend import Backend
from onert.backend.cache import DISTRIBUTION, Cache, default_directory, installed, is_settled
from onert.compiler.options import Options
from onert.ir import Array, Constant, Operand, Package
from onert.ir.content import Content, Models
from onert.ir.process.digests import SIZE, digest

from .encoding import encode
from .records import Records

NOT_IN_KEY: Mapping[str, str] = {
    "backends": "those that were loaded for them are a component, with their fingerprints, in order",
    "extensions": "a program that others' passes had a part in is not cached",
    "fixed": "it says which options a package's configuration may not change, and that is done before a key is made",
}
"""The options that decide nothing about a program, each with the reason."""

LIBRARIES = ("attrs", "ml_dtypes", "numpy")
"""What this package computes with; a backend names its own in its fingerprint."""


@cache
def process() -> Mapping[str, str]:
    """What this process runs: the content of the sources when it is first asked for, Python, libraries, the processor.

    NumPy computes constants, and has other code for other processors.
    """
    found = {"sources": installed(Path(onert.ir.__file__).parents[1], DISTRIBUTION)}
    found["python"] = f"{sys.implementation.cache_tag} {sys.hexversion:x}"
    found |= {name: _version(name) for name in LIBRARIES}
    found["machine"] = f"{os.uname().machine} {sys.byteorder}" if hasattr(os, "uname") else sys.platform
    found["processor"] = " ".join(sorted(_features()))
    return found


def is_process_known() -> bool:
    """Whether `process` was asked for: that takes time for the first, who may have to read all sources."""
    return process.cache_info().currsize > 0


def _version(name: str) -> str:
    """The installed version of a package, which need not be imported for that."""
    found = find_spec(name)
    return "" if found is None or found.origin is None else installed(Path(found.origin).parent, name)


def _features() -> Iterable[str]:
    """What NumPy found that the processor can do."""
    umath = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    features: Mapping[str, bool] = getattr(umath, "__cpu_features__", {})
    return (name for name, there in features.items() if there)


def components(
    package: Package, options: Options, backends: Sequence[Backend], constants: Sequence[Constant]
) -> dict[str, str] | None:
    """What decides a program, by name, but for the elements of constants; None if a backend does not say its part.

    EncodeError if the package has operations of classes that are not listed, such as a user's own.
    """
    fingerprints = [(backend.name, backend.fingerprint(options.settings)) for backend in backends]
    if any(fingerprint is None for _, fingerprint in fingerprints):
        return None
    found: dict[str, str] = dict(process())
    found["backends"] = repr(fingerprints)
    found |= {f"option {name}": value for name, value in _options(options).items()}
    content = package.content
    if content is not None:
        found |= {"name": package.name, "outline": content.outline}
    else:
        found["structure"] = structure(package, constants)
    return found


def _options(options: Options) -> Mapping[str, str]:
    """Each option as text; what has no order in one."""
    found = {f.name: getattr(options, f.name) for f in fields(Options) if f.name not in NOT_IN_KEY}
    return {name: repr(sorted(value) if isinstance(value, frozenset) else value) for name, value in found.items()}


def label(package: Package, options: Options, backends: Sequence[Backend]) -> str:
    """What people call a program, with tabs between: its package, the backends, and options that are not the usual."""
    usual, chosen = _options(Options()), _options(options)
    others = [f"{name}={value}" for name, value in chosen.items() if value != usual[name]]
    return "\t".join(("program", package.name, f"backends={';'.join(b.name for b in backends)}", *others))


def structure(value: object, constants: Sequence[Constant]) -> str:
    """A digest of a value, and the types of `constants` without their elements.

    EncodeError if it holds values of classes that are not listed.
    """
    parts = {id(constant): at for at, constant in enumerate(constants)}
    document, buffers = encode((value, tuple(_type(constant.array) for constant in constants)), Records(), parts)
    return Cache.key(document, *buffers)


def _type(array: Array) -> object:
    """What is known of a constant before its elements are read; all of it where these are objects."""
    return array if array.dtype == object else (str(array.dtype), array.shape)


def joined(components: Mapping[str, str]) -> str:
    """The key of components."""
    return Cache.key(*(part for pair in components.items() for part in pair))


def elements(constants: Iterable[Constant]) -> str:
    """A digest of the elements of constants whose types, or objects, are part of the structure."""
    found = digest()
    for constant in constants:
        if constant.array.dtype != object:
            found.update(np.ascontiguousarray(constant.array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def constants_of(models: Models) -> tuple[Constant, ...]:
    """The constants of models, each once."""
    found = {id(operand.data): operand.data for operand in operands_of(models) if operand.data is not None}
    return tuple(found.values())


def operands_of(models: Models) -> Iterable[Operand]:
    """The operands of models."""
    return (operand for model in models for subgraph in model.subgraphs for operand in subgraph.operands)


def content_digest(content: Content) -> str:
    """The digest of a content. That of a file is kept under what the system says of the file, so that only a file that
    is new or was changed is read for it.

    Nobody can set the time of the last change of a file's state. Nothing is kept of a file that was changed so recently
    that another change could bear the same time.
    """
    state = content.state
    if state is None:
        return content.digest
    memo, key = Cache(default_directory(os.environ)), Cache.key("content 1", repr(state))
    stored = memo.load(key)
    if stored is not None and len(stored) == SIZE:
        content.recognise(bytes(stored).hex())
        return content.digest
    found = content.digest
    if is_settled(state[-1]) and content.state == state:
        memo.store(key, bytes.fromhex(found), label=f"digest\t{state[2]} bytes")
    return found


def well_formed(content: Content) -> Iterable[str]:
    """The keys of empty entries that say that content is well-formed; for the first not all of it is read."""
    outline = {**process(), "well-formed": content.outline}
    yield joined(outline)
    yield joined({**outline, "digest": content_digest(content)})
