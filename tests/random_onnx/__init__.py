"""Random ONNX models with open dimensions."""
