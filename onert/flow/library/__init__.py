"""Transformations of flows and kernels for their operations, which users can extend.

A compiler transforms a copy of a flow until nothing changes, and then selects a kernel for each operation. In both
cases the one registered last has priority.

    library = standard_library()

    @library.transformer
    def drop_identities(flow: Graph) -> bool: ...

    @library.kernel("Swish")
    def swish(e: Emitter, node: Node) -> int:
        return e.binary(BinaryKind.MUL, node.input(0), e.unary(UnaryKind.LOGISTIC, node.input(0)))
"""

from .library import Kernel, Library, Transformer
from .rewriting import fuse, remove, replace
from .standard import standard_library

__all__ = ["Kernel", "Library", "Transformer", "fuse", "remove", "replace", "standard_library"]
