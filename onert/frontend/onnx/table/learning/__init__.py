"""What ONNX-ML has beside tensors' arithmetic, and the steps of training."""
