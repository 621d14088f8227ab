"""Ahead-of-time bundles: a model as one object file, its weights and a C header; and running one from Python."""

from .emit import Files, bundle
from .load import Bundle, load_bundle

__all__ = ["Bundle", "Files", "bundle", "load_bundle"]
