"""The macros of a bundle's header, and the lines that describe variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from onert.backend import Blueprint, Code, ObjectCode, Symbol
from onert.ir import DType

from .names import apart, identifier
from .plan import Plan
from .request_types import LayerFacts
from .variables import ALIGNMENT, Role, Variable

C_TYPES = {
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
    DType.INT8: "int8_t",
    DType.INT4: "int8_t",
    DType.INT2: "int8_t",
    DType.INT16: "int16_t",
    DType.INT32: "int32_t",
    DType.INT64: "int64_t",
    DType.UINT8: "uint8_t",
    DType.UINT4: "uint8_t",
    DType.UINT2: "uint8_t",
    DType.UINT16: "uint16_t",
    DType.UINT32: "uint32_t",
    DType.UINT64: "uint64_t",
    DType.BOOL: "uint8_t",
    DType.FLOAT16: "uint16_t",
    DType.BFLOAT16: "uint16_t",
    DType.FLOAT8_E4M3FN: "uint8_t",
    DType.FLOAT8_E5M2: "uint8_t",
    DType.FLOAT8_E4M3FNUZ: "uint8_t",
    DType.FLOAT8_E5M2FNUZ: "uint8_t",
    DType.FLOAT8_E8M0FNU: "uint8_t",
    DType.FLOAT4_E2M1FN: "uint8_t",
}
"""The C type of an element; floats that C lacks are stored as unsigned integers of the same size."""

AREAS = ("CONSTANT", "MUTABLE", "ACTIVATIONS")
"""The memory areas in the names of macros."""

_LONGEST = 48
"""The most characters of an operation's place in the name of an error code."""


def quoted(text: str) -> str:
    """The text as a JSON string; nothing in it begins or ends a C comment."""
    return json.dumps(text).replace("*/", "*\\/").replace("/*", "\\/*")


def describe(variable: Variable) -> str:
    """One line that describes a variable completely; `description.variables` parses it.

    `input "x" i8[1, 4] scale 0.5 zero point -3: 4 elements, 4 bytes at 64, also "serving_default_x:0"`
    """
    info = variable.info
    q = info.quantization
    scale = f" scale {q.scale!r} zero point {q.zero_point}" if q is not None and q.per_tensor else ""
    others = ", ".join(map(quoted, info.other_names))
    return (
        f"{variable.role.value} {quoted(info.name)} {info.type}{scale}: {variable.symbol.elements} elements, "
        f"{info.type.nbytes} bytes at {variable.offset}{', also ' if others else ''}{others}"
    )


def macros(
    name: str, plan: Plan, made: ObjectCode, blueprint: Blueprint, layers: Sequence[LayerFacts]
) -> Iterator[str]:
    """The lines of all macros: the bundle's, its error codes, its features, its variables."""
    upper = name.upper()
    rows: list[tuple[str, str] | str] = [
        "/* Sizes of the memory areas in bytes, and their alignment. */",
        (f"{upper}_CONSTANT_MEM_SIZE", str(len(made.constants))),
        (f"{upper}_MUTABLE_MEM_SIZE", str(plan.mutable_bytes)),
        (f"{upper}_ACTIVATIONS_MEM_SIZE", str(made.activation_bytes)),
        (f"{upper}_MEM_ALIGN", str(ALIGNMENT)),
        "\n/* The identifier that object, weights and header share. */",
        (f"{upper}_CONTENT_ID", "{" + ", ".join(f"0x{byte:02x}" for byte in made.content) + "}"),
        "\n/* Return values of entry points other than GLOW_SUCCESS. */",
        *_codes(upper, made, blueprint),
        "\n/* 1 for optional parts that this bundle has, else 0. */",
        *((f"{upper}_HAS_{what}", str(int(has))) for what, has in existing(plan, made, blueprint).items()),
        "\n/* Versions of the code. */",
        (f"{upper}_VERSIONS", str(len(made.versions))),
        (f"{upper}_VERSION_NAMES", "{" + ", ".join(quoted(version.target) for version in made.versions) + "}"),
        *_layers(upper, plan, layers),
    ]
    taken = {row[0] for row in rows if isinstance(row, tuple)}
    named: set[Symbol] = set()
    for variable in plan.variables:
        if variable.symbol in named:  # shared by several entry points
            continue
        named.add(variable.symbol)
        facts = _facts(variable)
        base = f"{upper}_{identifier(variable.info.name)}"
        while any(base + suffix in taken for suffix in facts):
            base = apart(base, {base, *taken})
        taken |= {base + suffix for suffix in facts}
        rows.append(f"\n/* {describe(variable)} */")
        rows += [(base + suffix, value) for suffix, value in facts.items()]
    width = max(len(row[0]) for row in rows if isinstance(row, tuple))
    for row in rows:
        yield row if isinstance(row, str) else f"#define {row[0]:<{width}} {row[1]}"
    yield ""


def _facts(variable: Variable) -> dict[str, str]:
    """The macros of a variable by suffix; the one without suffix is its offset in mutables."""
    info = variable.info
    facts = {
        "": str(variable.offset),
        "_SIZE": str(variable.symbol.elements),
        "_BYTES": str(info.type.nbytes),
        "_RANK": str(len(info.shape)),
        "_SHAPE": "{" + (", ".join(map(str, info.shape)) or "1") + "}",
    }
    if info.dtype in C_TYPES:
        facts["_TYPE"] = C_TYPES[info.dtype]
    q = info.quantization
    if q is not None and q.per_tensor:
        facts |= {
            "_SCALE": f"{q.scale!r}f" if "." in repr(q.scale) else f"{q.scale:.17e}f",
            "_ZERO_POINT": str(q.zero_point),
        }
    return facts


def existing(plan: Plan, made: ObjectCode, blueprint: Blueprint) -> dict[str, bool]:
    """A bundle's optional parts, by the suffixes of their macros, and whether it has them."""
    return {
        "CONFIG": blueprint.configuration,
        "RESET": any(variable.role is Role.STATE for variable in plan.variables),
        "STOP": any(function.endswith("_stop") for function in made.functions),
        "VERSION": len(made.versions) > 1,
        "STEP": blueprint.steps,
        "HOOK": blueprint.hook,
        "WEIGHTS": blueprint.embedded,
    }


def _codes(upper: str, made: ObjectCode, blueprint: Blueprint) -> Iterator[tuple[str, str]]:
    """Error codes: those of every bundle, the number of rules, and for each rule a code named after the operation."""
    yield f"{upper}_ERROR_CONTENT", f"({Code.CONTENT.value})"
    if blueprint.steps:
        yield f"{upper}_MORE", f"({Code.MORE.value})"
        yield f"{upper}_ERROR_NO_LAYER", f"({Code.NO_LAYER.value})"
    yield f"{upper}_ERROR_COUNT", str(len(made.errors))
    taken = {f"{upper}_ERROR_{what}" for what in ("CONTENT", "NO_LAYER", "COUNT")}
    for code, message in enumerate(made.errors, 1):
        place = re.sub(r"[^A-Z0-9]+", "_", message.partition(": ")[0].upper()).strip("_")[-_LONGEST:].strip("_")
        name = apart(f"{upper}_ERROR_{place or 'RULE'}", taken)
        taken.add(name)
        yield name, str(code)


def _layers(upper: str, plan: Plan, layers: Sequence[LayerFacts]) -> Iterator[tuple[str, str] | str]:
    """The number of layers of each entry point, and their names."""
    for entry in plan.entries if layers else ():
        own = [layer for layer in layers if layer.entry == entry.symbol]
        names = ", ".join(quoted(f"{layer.operation} {layer.name}") for layer in own)
        base = upper if len(plan.entries) == 1 else f"{upper}_{entry.symbol}"
        yield f"\n/* The layers of {entry.symbol}. */"
        yield f"{base}_LAYERS", str(len(own))
        yield f"{base}_LAYER_NAMES", "{" + (names or '""') + "}"
