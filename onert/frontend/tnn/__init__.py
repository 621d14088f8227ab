"""TNN models: a structure as text (.tnnproto) and its weights in a file beside it (.tnnmodel)."""

from .tnn_format import FORMAT, load

__all__ = ["FORMAT", "load"]
