"""An alias of the same module, for applications with `from onnxruntime.capi import _pybind_state as C`."""

from .onnxruntime_pybind11_state import *  # noqa: F403 # all its names
from .onnxruntime_pybind11_state import __all__ as __all__
