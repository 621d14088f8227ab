"""The C header of a bundle: what the compiler of a C program, its author, and `load_bundle` read."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from onert.backend import ObjectCode
from onert.ir import DType

from .names import apart, identifier
from .plan import Plan
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
"""C's type for an element; floats that C does not have are kept as unsigned integers of their size."""

AREAS = ("CONSTANT", "MUTABLE", "ACTIVATIONS")
"""What macros call the memory areas."""

_COMMON = """\
#ifndef _GLOW_BUNDLE_COMMON_DEFS
#define _GLOW_BUNDLE_COMMON_DEFS

/* What an entry point returns when all went well. */
#define GLOW_SUCCESS 0

/* An array that starts at a multiple of so many bytes. */
#define GLOW_MEM_ALIGN(size) __attribute__((aligned(size)))

/* The address of a variable in a memory area. */
#define GLOW_GET_ADDR(area, offset) (((uint8_t *)(area)) + (offset))

#endif

#ifndef _GLOW_BUNDLE_DYNAMIC_DEFS
#define _GLOW_BUNDLE_DYNAMIC_DEFS

typedef struct SymbolTableEntry {
  /* Name of a variable, as the model has it. */
  const char *name;
  /* Offset of the variable inside its memory area. */
  size_t offset;
  /* Number of elements of the variable. */
  size_t size;
  /* 1 for a mutable variable, 0 for a constant. */
  char kind;
} SymbolTableEntry;

typedef struct BundleConfig {
  /* Bytes of the three memory areas. */
  size_t constantWeightVarsMemSize;
  size_t mutableWeightVarsMemSize;
  size_t activationsMemSize;
  /* Every area starts at a multiple of so many bytes. */
  size_t alignment;
  /* Number of symbols in the symbol table. */
  size_t numSymbols;
  /* Symbol table: inputs and outputs first, then constants. */
  const SymbolTableEntry *symbolTable;
} BundleConfig;

/* The symbol of exactly this name; a null pointer where there is none. */
static inline const SymbolTableEntry *bundle_find_symbol(const BundleConfig *config, const char *name) {
  size_t i, c;
  for (i = 0; i < config->numSymbols; ++i) {
    const char *other = config->symbolTable[i].name;
    for (c = 0; name[c] == other[c]; ++c) {
      if (name[c] == 0) return &config->symbolTable[i];
    }
  }
  return (const SymbolTableEntry *)0;
}

#endif
"""


def header(name: str, plan: Plan, made: ObjectCode, *, dynamic: bool) -> str:
    """The text; `dynamic` where the object defines `NAME_config`."""
    upper = name.upper()
    parts = [
        "\n".join(_comment(name, plan, made)),
        f"#ifndef _GLOW_BUNDLE_{upper}_H\n#define _GLOW_BUNDLE_{upper}_H\n\n#include <stddef.h>\n#include <stdint.h>\n",
        _COMMON,
        "\n".join(_macros(upper, plan, made)),
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        *_functions(plan, made),
        *_reset(name, plan),
        *([f"/* Sizes and symbols. */\nextern const BundleConfig {name}_config;\n"] if dynamic else []),
        "#ifdef __cplusplus\n}\n#endif\n",
        "#endif\n",
    ]
    return "\n".join(parts)


def _comment(name: str, plan: Plan, made: ObjectCode) -> Iterator[str]:
    room = plan.mutable_bytes if plan.overlap else made.activation_bytes
    live = plan.live_bytes / room if room else 1.0
    yield f"/* Bundle {name} for {made.target}, made by onert."
    yield " *"
    yield f" * Memory areas, each at a multiple of {ALIGNMENT} bytes:"
    yield f" *   constants {len(made.constants)} bytes, the contents of {name}.weights"
    yield f" *   mutables {plan.mutable_bytes} bytes"
    yield f" *   activations {made.activation_bytes} bytes"
    yield f" * Activations allocation efficiency: {live:.4f}"
    if plan.overlap:
        yield " * A call overwrites inputs: they share memory with outputs and what lies between."
    for entry in plan.entries:
        yield " *"
        yield f" * Entry point {entry.symbol}:"
        for variable in plan.variables:
            if variable.entry == entry.symbol:
                yield f" *   {describe(variable)}"
    if made.errors:
        yield " *"
        yield " * Error codes, for an element N that breaks a rule:"
    for code, message in enumerate(made.errors, 1):
        yield f" *   {code}: {_quoted(message)}"
    yield " */"


def _quoted(text: str) -> str:
    """In double quotes, as JSON; nothing in it begins or ends a comment."""
    return json.dumps(text).replace("*/", "*\\/").replace("/*", "\\/*")


def describe(variable: Variable) -> str:
    """One line with all there is to know of a variable, which `description.variables` reads again.

    `input "x" i8[1, 4] scale 0.5 zero point -3: 4 elements, 4 bytes at 64, also "serving_default_x:0"`
    """
    info = variable.info
    q = info.quantization
    scale = f" scale {q.scale!r} zero point {q.zero_point}" if q is not None and q.per_tensor else ""
    others = ", ".join(map(_quoted, info.other_names))
    return (
        f"{variable.role.value} {_quoted(info.name)} {info.type}{scale}: {variable.symbol.elements} elements, "
        f"{info.type.nbytes} bytes at {variable.offset}{', also ' if others else ''}{others}"
    )


def _macros(upper: str, plan: Plan, made: ObjectCode) -> Iterator[str]:
    taken = {f"{upper}_{area}_MEM_SIZE" for area in AREAS} | {f"{upper}_MEM_ALIGN"}
    rows: list[tuple[str, str] | str] = [
        "/* Bytes of the memory areas, and what they start at a multiple of. */",
        (f"{upper}_CONSTANT_MEM_SIZE", str(len(made.constants))),
        (f"{upper}_MUTABLE_MEM_SIZE", str(plan.mutable_bytes)),
        (f"{upper}_ACTIVATIONS_MEM_SIZE", str(made.activation_bytes)),
        (f"{upper}_MEM_ALIGN", str(ALIGNMENT)),
    ]
    for variable in plan.variables:
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
    """The macros of a variable by suffix; the bare one is its offset in mutables."""
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


def _functions(plan: Plan, made: ObjectCode) -> Iterator[str]:
    for entry in plan.entries:
        yield (
            "/* Runs the model once over memory areas that the caller allocates; returns GLOW_SUCCESS or an error\n"
            " * code. Calls with mutables and activations of their own may run at once.\n */\n"
            f"int {entry.symbol}(uint8_t *constantWeightVars, uint8_t *mutableWeightVars, uint8_t *activations);\n"
        )
    for function in made.functions:
        yield (
            "/* Ends this bundle's threads; the next call of an entry point starts them again. */\n"
            f"void {function}(void);\n"
        )


def _reset(name: str, plan: Plan) -> Iterator[str]:
    """A function that lets all state begin anew, where there is any."""
    state = [variable for variable in plan.variables if variable.role is Role.STATE]
    if not state:
        return
    yield "/* Lets all state begin anew; to be called before the first run. */"
    yield f"static inline void {name}_reset(uint8_t *mutableWeightVars) {{"
    yield "  size_t i;"
    for variable in state:
        first, nbytes = variable.offset, variable.info.type.nbytes
        cleared = np.full(1, variable.info.type.cleared, variable.info.dtype.numpy).tobytes()
        values = ", ".join(str(byte) for byte in cleared)
        yield f"  for (i = 0; i < {nbytes}; ++i) {{"
        yield f"    static const uint8_t element[] = {{{values}}};"
        yield f"    mutableWeightVars[{first} + i] = element[i % {len(cleared)}];"
        yield "  }"
    yield "}\n"


def initializer(constants: bytes) -> str:
    """The bytes as the inside of a C initialiser, 20 on each line."""
    texts = [f" 0X{byte:02X}," for byte in range(256)]
    return "".join("".join(texts[b] for b in constants[i : i + 20]) + "\n" for i in range(0, len(constants), 20))
