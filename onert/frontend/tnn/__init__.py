"""TNN models: a structure in text (.tnnproto) and weights beside it (.tnnmodel)."""

from .tnn_format import FORMAT, load

__all__ = ["FORMAT", "load"]
