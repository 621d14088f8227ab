"""`onert_bundle` in the words of Glow's tools: options that only they have, and what they mean here.

Source: `model-compiler` of Glow's page on ahead-of-time compilation, and `loader` of its page of 2018.
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

IGNORED = {
    "g": "the object gets no debug information",
    "jit": "a bundle is always native code",
    "cpu": "a bundle is always native code",
    "image_mode": "an entry point takes its inputs as they are",
}
"""Options that change nothing, with the reason."""

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
"""Element types in Glow's words; a quantised one is followed by scale and offset, which the model has itself."""


def add(parser: argparse.ArgumentParser) -> None:
    """Glow's options beside those that are another spelling of ours."""
    glow = parser.add_argument_group("Glow's options")
    glow.add_argument(
        "-model",
        "-m",
        "-d",
        dest="named",
        action="append",
        metavar="MODEL",
        help="MODEL; positional arguments (pictures, for Glow) are then ignored",
    )
    glow.add_argument(
        "-model-input",
        action="append",
        default=[],
        metavar="NAME,TYPE,SHAPE",
        help="the shape of an input: x,float,[1,8]",
    )
    glow.add_argument("-backend", choices=("CPU",), help="the only backend that makes bundles")
    glow.add_argument("-float-abi", choices=("default", "hard", "soft"), help="hard: the target's name ends in hf")
    for name, reason in IGNORED.items():
        kind: dict[str, Any] = {"metavar": "MODE"} if name == "image_mode" else {"action": "store_true"}
        glow.add_argument(f"-{name}", dest=f"ignored_{name}", help=f"ignored: {reason}", **kind)


def notes(options: argparse.Namespace) -> Iterator[str]:
    """What is ignored of the options that are given, and why."""
    for name, reason in IGNORED.items():
        if getattr(options, f"ignored_{name}"):
            yield f"-{name} is ignored: {reason}"
    if options.named and options.models:
        yield f"{', '.join(options.models)} is ignored: a bundle is made of the model alone"


def models(options: argparse.Namespace) -> list[str]:
    """The models that are named; -d, which names a folder in Glow, may leave out its only file's ending."""
    return [_with_ending(name) for name in options.named] if options.named else list(options.models)


def _with_ending(name: str) -> str:
    place = Path(name)
    try:
        alike = [] if place.exists() else list(place.parent.glob(f"{escape(place.name)}.*"))
    except OSError:  # the name is too long for a file's: reading it says so
        return name
    return str(alike[0]) if len(alike) == 1 else name


def target(options: argparse.Namespace) -> str | None:
    """The target with the convention for floats that -float-abi asks for; UsageError where there is none such."""
    triple, convention = options.target, options.float_abi
    if convention in (None, "default"):
        return str(triple) if triple is not None else None
    bare = (triple or "").removesuffix("hf")
    if not bare.startswith(("arm", "thumb")) or not bare.endswith("eabi"):
        if convention == "soft":
            raise UsageError(f"-float-abi is soft, which the target {triple or 'of this machine'} does not have")
        return str(triple) if triple is not None else None
    return bare if convention == "soft" else f"{bare}hf"


def shapes(options: argparse.Namespace, package: Package) -> dict[int | str, tuple[int, ...]]:
    """The shapes of -model-input by name; UsageError for what cannot be read, and for another type than the model's."""
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
            raise UsageError(f"-model-input is {text!r}, expected a type of {', '.join(_TYPES)}")
        if name in types and types[name] is not _TYPES[kind]:
            raise UsageError(f"-model-input says that {name!r} is {kind}, the model says {types[name].text}")
    return found
