"""Models in ONNX Runtime's own format."""

from .ort_format import FORMAT

__all__ = ["FORMAT"]
