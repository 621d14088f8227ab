"""Other models as flows."""

from .packages import from_package

__all__ = ["from_package"]
