"""The function declarations and definitions of a bundle's header."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onert.backend import Blueprint, ObjectCode

from .plan import Plan
from .variables import Role

_AREAS = "const uint8_t *constantWeightVars, uint8_t *mutableWeightVars, uint8_t *activations"


def functions(name: str, plan: Plan, made: ObjectCode, blueprint: Blueprint) -> Iterator[str]:
    """Declarations of entry points and of other symbols in the object, and the functions that the header defines."""
    upper = name.upper()
    for entry in plan.entries:
        yield (
            "/* Runs the model once over memory areas that the caller allocates; returns GLOW_SUCCESS or an error\n"
            " * code. Calls with separate mutables and activations may run at the same time.\n */\n"
            f"int {entry.symbol}({_AREAS});\n"
        )
        if blueprint.steps:
            yield (
                f"/* Runs layer *layer of {entry.symbol}, initially 0, and increments *layer: returns\n"
                f" * {upper}_MORE until the last layer, then what {entry.symbol} would, with *layer 0 again. A run\n"
                " * that has begun must be finished before other calls on the same mutables and activations.\n"
                " */\n"
                f"int {entry.symbol}_step({_AREAS}, uint32_t *layer);\n"
            )
    if f"{name}_stop" in made.functions:
        yield (
            "/* Ends this bundle's threads; the next call of an entry point starts them again. */\n"
            f"void {name}_stop(void);\n"
        )
    if f"{name}_version" in made.functions:
        yield (
            f"/* The version of the code that this processor runs: its index in {upper}_VERSION_NAMES. */\n"
            f"int {name}_version(void);\n"
        )
    if blueprint.hook:
        yield (
            "/* Called before (ended 0) and after (ended 1) each layer of a run. The object's own function does\n"
            " * nothing: a program that defines one is linked with that.\n */\n"
            f"void {name}_hook(uint32_t layer, uint32_t ended);\n"
        )
    if blueprint.embedded:
        yield f"/* The weights. */\nextern const uint8_t {name}_weights[{len(made.constants)}];\n"
    if blueprint.configuration:
        yield f"/* Sizes and symbols. */\nextern const BundleConfig {name}_config;\n"
    yield "\n".join(_verify(name, made))
    yield from _reset(name, plan)


def _verify(name: str, made: ObjectCode) -> Iterator[str]:
    """The function that verifies header, object and weights: they share an identifier, with which the weights end."""
    size, code = len(made.content), f"{name.upper()}_ERROR_CONTENT"
    yield "/* The identifier that object, weights and header share. */"
    yield f"extern const uint8_t {name}_content_id[{size}];\n"
    yield f"/* GLOW_SUCCESS, or {code} if this header, the object and these weights were"
    yield " * not made together. Entry points check the weights themselves.\n */"
    yield f"static inline int {name}_verify(const uint8_t *constantWeightVars) {{"
    yield f"  static const uint8_t content[{size}] = {name.upper()}_CONTENT_ID;"
    yield "  size_t i;"
    yield f"  for (i = 0; i < {size}; ++i) {{"
    yield f"    if ({name}_content_id[i] != content[i]) return {code};"
    yield f"    if (constantWeightVars[{len(made.constants) - size} + i] != content[i]) return {code};"
    yield "  }"
    yield "  return GLOW_SUCCESS;"
    yield "}\n"


def _reset(name: str, plan: Plan) -> Iterator[str]:
    """The function that resets all state, if there is any."""
    state = [variable for variable in plan.variables if variable.role is Role.STATE]
    if not state:
        return
    yield "/* Resets all state; must be called before the first run. */"
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
