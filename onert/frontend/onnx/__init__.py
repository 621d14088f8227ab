"""ONNX models."""

from .onnx_format import FORMAT

__all__ = ["FORMAT"]
