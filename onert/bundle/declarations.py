"""The functions that a bundle's header declares or defines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onert.backend import Blueprint, ObjectCode

from .plan import Plan
from .variables import Role

_AREAS = "const uint8_t *constantWeightVars, uint8_t *mutableWeightVars, uint8_t *activations"


def functions(name: str, plan: Plan, made: ObjectCode, blueprint: Blueprint) -> Iterator[str]:
    """Entry points, what else the object has, and what the header defines itself."""
    upper = name.upper()
    for entry in plan.entries:
        yield (
            "/* Runs the model once over memory areas that the caller allocates; returns GLOW_SUCCESS or an error\n"
            " * code. Calls with mutables and activations of their own may run at once.\n */\n"
            f"int {entry.symbol}({_AREAS});\n"
        )
        if blueprint.steps:
            yield (
                f"/* Runs the layer of {entry.symbol} that *layer counts, 0 at first, and counts it up: returns\n"
                f" * {upper}_MORE until the last, then what {entry.symbol} would, with *layer 0 again. A run that has\n"
                " * begun is to be finished, with no other call on the same mutables and activations in between.\n"
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
            f"/* Which version of the code runs on this processor: its number in {upper}_VERSION_NAMES. */\n"
            f"int {name}_version(void);\n"
        )
    if blueprint.hook:
        yield (
            "/* Called before (ended 0) and after (ended 1) each layer of a run. The object's own does nothing: a\n"
            " * program that defines one is linked with that.\n */\n"
            f"void {name}_hook(uint32_t layer, uint32_t ended);\n"
        )
    if blueprint.embedded:
        yield f"/* The weights. */\nextern const uint8_t {name}_weights[{len(made.constants)}];\n"
    if blueprint.configuration:
        yield f"/* Sizes and symbols. */\nextern const BundleConfig {name}_config;\n"
    yield "\n".join(_verify(name, made))
    yield from _reset(name, plan)


def _verify(name: str, made: ObjectCode) -> Iterator[str]:
    """What compares header, object and weights: the last bytes of the weights are those of the object."""
    size, code = len(made.content), f"{name.upper()}_ERROR_CONTENT"
    yield "/* What the object has in common with weights and header. */"
    yield f"extern const uint8_t {name}_content_id[{size}];\n"
    yield f"/* GLOW_SUCCESS, or {code} where this header, the object and these weights were"
    yield " * not made together. Entry points look at the weights themselves.\n */"
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
