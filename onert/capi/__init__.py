"""ONNX Runtime's errors, where its applications import them: `onnxruntime.capi.onnxruntime_pybind11_state`."""
