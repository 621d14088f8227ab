"""Operators of ONNX Runtime's own domain, com.microsoft."""
