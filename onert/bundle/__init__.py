"""Ahead-of-time bundles: a model as an object file, its weights and a C header; and running one from Python."""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

from .request import bundle

if TYPE_CHECKING:
    from .load import Bundle, load_bundle
    from .request_types import Files

__all__ = ["Bundle", "Files", "bundle", "load_bundle"]

__getattr__ = later(
    __name__,
    {"Bundle": "onert.bundle.load", "Files": "onert.bundle.request_types", "load_bundle": "onert.bundle.load"},
)
