"""What cells tell of themselves: where their tensors lie, and what their steps take."""

from .listing import listing
from .profile import Profile

__all__ = ["Profile", "listing"]
