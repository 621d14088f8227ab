"""Operators of ONNX-ML, and training steps."""
