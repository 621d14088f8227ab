"""Reports about cells: the memory of their tensors, and the time of their steps."""

from .listing import listing
from .profile import Profile

__all__ = ["Profile", "listing"]
