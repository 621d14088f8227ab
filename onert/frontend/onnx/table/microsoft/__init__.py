"""Operators of ONNX Runtime's own domain, com.microsoft."""

DOMAIN = "com.microsoft"
