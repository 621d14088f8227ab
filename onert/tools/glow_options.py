"""Options of Glow's tools that `onert_bundle` accepts, and their meaning here.

Source: `model-compiler` in Glow's documentation of ahead-of-time compilation, and `loader` in the 2018 version of it.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import Any

from onert.ir import DType, Package

from .exits import UsageError
from .options import option

IGNORED = {
    "g": "the object gets no debug information",
    "jit": "a bundle is always native code",
    "cpu": "a bundle is always native code",
    "image_mode": "an entry point takes its inputs as they are",
}
"""Options that have no effect, with the reason."""

_TYPES = {
    "float": DType.FLOAT32,
    "float16": DType.FLOAT16,
    "bfloat16": DType.BFLOAT16,
    "int8q": DType.INT8,
    "int16q": DType.INT16,
    "int32q": DType.INT32,
    "int32": DType.INT32,
    "int64": DType.INT64,
    "bool": DType.BOOL,
}
"""Glow's names of element types. Scale and offset, which follow a quantised one, are taken from the model instead."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add Glow's options, except those that are only other spellings of ours."""
    glow = parser.add_argument_group("Glow's options")
    option(
        glow,
        "-model -m -d MODEL",
        "same as MODEL; positional arguments (pictures in Glow) are then ignored",
        dest="named",
        action="append",
    )
    option(glow, "-model-input NAME,TYPE,SHAPE", "the shape of an input: x,float,[1,8]", action="append", default=[])
    option(glow, "-backend", "the only backend that makes bundles", choices=("CPU",))
    option(glow, "-float-abi", "hard: use the target whose name ends in hf", choices=("default", "hard", "soft"))
    for name, reason in IGNORED.items():
        kind: dict[str, Any] = {"metavar": "MODE"} if name == "image_mode" else {"action": "store_true"}
        glow.add_argument(f"-{name}", dest=f"ignored_{name}", help=f"ignored: {reason}", **kind)


def notes(options: argparse.Namespace) -> Iterator[str]:
    """A note for each given option or argument that is ignored, with the reason."""
    for name, reason in IGNORED.items():
        if getattr(options, f"ignored_{name}"):
            yield f"-{name} is ignored: {reason}"
    if options.named and options.models:
        yield f"{', '.join(options.models)} is ignored: a bundle is generated from the model alone"


def models(options: argparse.Namespace) -> list[str]:
    """The models given. Their extension may be left out if only one file matches, because Glow's -d names a folder."""
    return [_with_ending(name) for name in options.named] if options.named else list(options.models)


def _with_ending(name: str) -> str:
    place = Path(name)
    try:
        alike = [] if place.exists() else list(place.parent.glob(f"{escape(place.name)}.*"))
    except OSError:  # such as a name that is too long: reported when the file is read
        return name
    return str(alike[0]) if len(alike) == 1 else name


def target(options: argparse.Namespace) -> str | None:
    """The target with the calling convention of -float-abi. Raises UsageError if the target has no such convention."""
    triple, convention = options.target, options.float_abi
    if convention in (None, "default"):
        return str(triple) if triple is not None else None
    bare = (triple or "").removesuffix("hf")
    if not bare.startswith(("arm", "thumb")) or not bare.endswith("eabi"):
        if convention == "soft":
            raise UsageError(f"-float-abi is soft, which the target {triple or 'of this machine'} does not support")
        return str(triple) if triple is not None else None
    return bare if convention == "soft" else f"{bare}hf"


def shapes(options: argparse.Namespace, package: Package) -> dict[int | str, tuple[int, ...]]:
    """The shapes in -model-input by name. Raises UsageError for invalid text or a wrong type."""
    graph = package.model.subgraphs[0]
    types = {graph.operands[i].name: graph.type(i).dtype for i in graph.inputs}
    found: dict[int | str, tuple[int, ...]] = {}
    for text in options.model_input:
        name, _, rest = text.partition(",")
        kind, _, rest = rest.partition(",")
        try:
            shape = ast.literal_eval(rest[: rest.index("]") + 1])
            found[name] = tuple(int(d) for d in shape)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise UsageError(f"-model-input is {text!r}, expected NAME,TYPE,[DIMENSIONS]") from error
        if kind not in _TYPES:
            raise UsageError(f"-model-input is {text!r}, expected one of the types {', '.join(_TYPES)}")
        if name in types and types[name] is not _TYPES[kind]:
            raise UsageError(f"-model-input gives {name!r} the type {kind}, but in the model it is {types[name].text}")
    return found
