"""A backend for ONNX's own test suite: `onnx.backend.test.BackendTest(onert.runtime.session.Backend, __name__)`.

Source: the methods of onnx.backend.base.Backend and BackendRep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .choices import SessionOptions
from .inference_session import InferenceSession


class Prepared:
    """A compiled model."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **more: Any) -> list[Any]:
        """The outputs for inputs given in the model's order, by name, or as the only array."""
        names = [end.name for end in self.session.get_inputs()]
        if isinstance(inputs, Mapping):
            feed = dict(inputs)
        elif isinstance(inputs, Sequence):
            feed = dict(zip(names, inputs, strict=False))
        else:
            feed = {names[0]: inputs}
        return self.session.run(None, feed)


class Backend:
    """Runs models of the package `onnx` with onert; options of onert may be given by name."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **more: Any) -> bool:
        """Whether the device is supported; only `prepare` finds out whether a model can be read and compiled."""
        return cls.supports_device(device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.upper() == "CPU"

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> Prepared:
        """Compile a ModelProto, its bytes, or the model at a path. Raises ArgumentError if that is impossible."""
        content = model.SerializeToString() if hasattr(model, "SerializeToString") else model
        choices = SessionOptions()
        choices.onert = options
        return Prepared(InferenceSession(content, choices))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> list[Any]:
        """The outputs of a model, which is compiled for this run."""
        return cls.prepare(model, device, **options).run(inputs)
