"""The builtin backend: copies between memory spaces, and control flow."""

from .backend import Builtin

__all__ = ["Builtin"]
