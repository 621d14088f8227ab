"""The name by which some applications import the same: `from onnxruntime.capi import _pybind_state as C`."""

from .onnxruntime_pybind11_state import *  # noqa: F403 # whatever that has
from .onnxruntime_pybind11_state import __all__ as __all__
