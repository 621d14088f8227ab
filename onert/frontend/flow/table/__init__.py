"""The operations of flows by the name of their type, and what each becomes in the IR."""

from __future__ import annotations

from collections.abc import Mapping

from onert.frontend.flow.emitter import Rule

from . import arrays, elementwise, gathers, products, recipes, reductions

TABLE: Mapping[str, Rule] = {
    **elementwise.RULES,
    **reductions.RULES,
    **products.RULES,
    **arrays.RULES,
    **gathers.RULES,
    **recipes.RULES,
}
"""What the names of types mean; what is missing here has no meaning in the IR."""
