"""Ahead-of-time bundles: a model as one object file, its weights and a C header; and running one from Python."""

import importlib
from typing import TYPE_CHECKING, Any

from .request import Files, bundle

if TYPE_CHECKING:
    from .load import Bundle, load_bundle

__all__ = ["Bundle", "Files", "bundle", "load_bundle"]

_OF_LOAD = ("Bundle", "load_bundle")


def __getattr__(name: str) -> Any:
    """What runs a bundle is read when someone names it."""
    if name not in _OF_LOAD:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("onert.bundle.load"), name)
