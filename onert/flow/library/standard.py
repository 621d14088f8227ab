"""A compiler's default library."""

from __future__ import annotations

from onert.flow.gradients import GRADIENTS
from onert.frontend.flow.table import TABLE
from onert.frontend.flow.table.elementwise import FUNCTIONS, RENAMED
from onert.frontend.flow.table.reductions import KINDS

from .composites import expand_softmax
from .expressions import Expressions
from .library import Kernel, Library
from .products import fuse_products
from .updates import add_rows_in_place, join_added_rows


def standard_library() -> Library:
    """A new library with a kernel for every known operation, the standard transformations, and all known
    derivatives."""
    library = Library()
    for operation, rule in TABLE.items():
        of_elements = operation in FUNCTIONS or operation in RENAMED or operation in KINDS
        library.register(Kernel(f"{operation}Expr" if of_elements else operation, operation, rule))
    library.gradients.update(GRADIENTS)
    library.transformer(Expressions())
    library.transformer(fuse_products)
    library.transformer(expand_softmax)
    library.transformer(join_added_rows)
    library.transformer(add_rows_in_place)
    return library
