"""The module from which applications import ONNX Runtime's errors: `onnxruntime.capi.onnxruntime_pybind11_state`."""
