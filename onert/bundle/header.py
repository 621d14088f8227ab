"""A bundle's C header, read by C compilers, programmers, and `load_bundle`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onert.backend import Blueprint, ObjectCode

from .declarations import functions
from .macros import describe, macros, quoted
from .plan import Plan
from .request_types import LayerFacts
from .variables import ALIGNMENT

_COMMON = """\
#ifndef _GLOW_BUNDLE_COMMON_DEFS
#define _GLOW_BUNDLE_COMMON_DEFS

/* The value that a successful entry point returns. */
#define GLOW_SUCCESS 0

/* An array aligned to this many bytes. */
#ifdef _MSC_VER
#define GLOW_MEM_ALIGN(size) __declspec(align(size))
#else
#define GLOW_MEM_ALIGN(size) __attribute__((aligned(size)))
#endif

/* The address of a variable in a memory area. */
#define GLOW_GET_ADDR(area, offset) (((uint8_t *)(area)) + (offset))

#endif

#ifndef _GLOW_BUNDLE_DYNAMIC_DEFS
#define _GLOW_BUNDLE_DYNAMIC_DEFS

typedef struct SymbolTableEntry {
  /* Name of the variable in the model. */
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
  /* Alignment of every area in bytes. */
  size_t alignment;
  /* Number of symbols in the symbol table. */
  size_t numSymbols;
  /* Symbol table: inputs and outputs first, then constants. */
  const SymbolTableEntry *symbolTable;
} BundleConfig;

/* The symbol with exactly this name, or a null pointer. */
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


def header(name: str, plan: Plan, made: ObjectCode, blueprint: Blueprint, layers: Sequence[LayerFacts] = ()) -> str:
    """The header's text; `layers` are named if the caller needs them."""
    upper = name.upper()
    parts = [
        "\n".join(_comment(name, plan, made)),
        f"#ifndef _GLOW_BUNDLE_{upper}_H\n#define _GLOW_BUNDLE_{upper}_H\n\n#include <stddef.h>\n#include <stdint.h>\n",
        _COMMON,
        "\n".join(macros(name, plan, made, blueprint, layers)),
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        *functions(name, plan, made, blueprint),
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
        yield " * A call overwrites inputs: they share memory with outputs and intermediate results."
    yield f" * Content: {made.content.hex()}"
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
        yield f" *   {code}: {quoted(message)}"
    yield " */"


def initializer(constants: bytes) -> str:
    """The bytes as the content of a C initialiser, 20 per line."""
    texts = [f" 0X{byte:02X}," for byte in range(256)]
    return "".join("".join(texts[b] for b in constants[i : i + 20]) + "\n" for i in range(0, len(constants), 20))
