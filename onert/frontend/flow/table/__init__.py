"""The rules for flow operations, by type."""

from __future__ import annotations

from collections.abc import Mapping

from onert.frontend.flow.emitter import Rule

from .arrays import RULES as ARRAYS
from .elementwise import RULES as ELEMENTWISE
from .gathers import RULES as GATHERS
from .products import RULES as PRODUCTS
from .recipes import RULES as RECIPES
from .reductions import RULES as REDUCTIONS
from .tensorflow_ops import RULES as TENSORFLOW

TABLE: Mapping[str, Rule] = {
    **ELEMENTWISE,
    **REDUCTIONS,
    **PRODUCTS,
    **ARRAYS,
    **GATHERS,
    **RECIPES,
    **TENSORFLOW,
}
"""Rules by type; other types are unknown."""
