"""Cache keys of compiled programs: a digest of everything that a compiled program depends on.

A key is a digest of named components. Each is included because changing it may change the program; a test changes
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
from onert.ir.process.cpus import detected_features
from onert.ir.process.digests import SIZE, digest

from .encoding import encode
from .records import Records

NOT_IN_KEY: Mapping[str, str] = {
    "backends": "the backends loaded for it are a component, with their fingerprints, in order",
    "extensions": "programs compiled with extensions are not cached",
    "fixed": "it only decides which options a package's configuration may override, which happens before keys are made",
}
"""The options that are not part of a key, each with the reason."""

LIBRARIES = ("attrs", "ml_dtypes", "numpy")
"""The libraries that this package computes with; a backend includes its own in its fingerprint."""


@cache
def process() -> Mapping[str, str]:
    """The components of this process: its sources (as found on the first call), Python, libraries, the processor.

    The processor matters because NumPy computes constants with code that depends on it.
    """
    found = {"sources": installed(Path(onert.ir.__file__).parents[1], DISTRIBUTION)}
    found["python"] = f"{sys.implementation.cache_tag} {sys.hexversion:x}"
    found |= {name: _version(name) for name in LIBRARIES}
    found["machine"] = f"{os.uname().machine} {sys.byteorder}" if hasattr(os, "uname") else sys.platform
    found["processor"] = " ".join(sorted(_features()))
    return found


def is_process_known() -> bool:
    """Whether `process` was already called: the first call is slow, as it may have to read all sources."""
    return process.cache_info().currsize > 0


def _version(name: str) -> str:
    """The installed version of a package, determined without importing it."""
    found = find_spec(name)
    return "" if found is None or found.origin is None else installed(Path(found.origin).parent, name)


def _features() -> Iterable[str]:
    """The processor features that NumPy detected."""
    return (name for name, detected in detected_features().items() if detected)


def components(
    package: Package, options: Options, backends: Sequence[Backend], constants: Sequence[Constant], variant: str = ""
) -> dict[str, str] | None:
    """A key's components by name, except the elements of constants; None if a backend has no fingerprint.

    Raises EncodeError if the package has operations whose classes are not in the closed list, such as a user's own.
    """
    fingerprints = [(backend.name, backend.fingerprint(options.settings)) for backend in backends]
    if any(fingerprint is None for _, fingerprint in fingerprints):
        return None
    found: dict[str, str] = dict(process())
    found["backends"] = repr(fingerprints)
    found["variant"] = variant
    found |= {f"option {name}": value for name, value in _options(options).items()}
    content = package.content
    if content is not None:
        found |= {"name": package.name, "outline": content.outline}
    else:
        found["structure"] = structure(package, constants)
    return found


def _options(options: Options) -> Mapping[str, str]:
    """Each option as text, with sets sorted."""
    found = {f.name: getattr(options, f.name) for f in fields(Options) if f.name not in NOT_IN_KEY}
    return {name: repr(sorted(value) if isinstance(value, frozenset) else value) for name, value in found.items()}


def label(package: Package, options: Options, backends: Sequence[Backend], variant: str) -> str:
    """A program's label for people, separated by tabs: package, backends, and options that differ from the default."""
    default, chosen = _options(Options()), _options(options)
    others = [f"{name}={value}" for name, value in chosen.items() if value != default[name]]
    names = f"backends={';'.join(b.name for b in backends)}"
    return "\t".join(("program", package.name, names, *others, *filter(None, (variant,))))


def structure(value: object, constants: Sequence[Constant]) -> str:
    """A digest of a value, and of the types of `constants` without their elements.

    Raises EncodeError if it contains a value whose class is not in the closed list.
    """
    parts = {id(constant): at for at, constant in enumerate(constants)}
    document, buffers = encode((value, tuple(_type(constant.array) for constant in constants)), Records(), parts)
    return Cache.key(document, *buffers)


def _type(array: Array) -> object:
    """The dtype and shape of a constant's array; the array itself if its elements are objects."""
    return array if array.dtype == object else (str(array.dtype), array.shape)


def key_of(components: Mapping[str, str]) -> str:
    """The key made of components."""
    return Cache.key(*(part for pair in components.items() for part in pair))


def elements(constants: Iterable[Constant]) -> str:
    """A digest of the elements of constants, except object arrays, which are part of the structure."""
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
    """The digest of a content. A file's digest is cached under the file's state, so that only a new or changed file is
    read for it.

    The time of the last change of a file's state (ctime) cannot be forged. Nothing is cached for a file changed so
    recently that another change could have the same time.
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
    """The keys of the empty entries that mark content as well-formed; the first needs only part of the content."""
    outline = {**process(), "well-formed": content.outline}
    yield key_of(outline)
    yield key_of({**outline, "digest": content_digest(content)})
