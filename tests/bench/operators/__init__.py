"""Cases of single ONNX operators at sizes of real models."""
