"""A backend of ONNX's own test suite: `onnx.backend.test.BackendTest(onert.runtime.session.Backend, __name__)`.

Source: onnx.backend.base.Backend and BackendRep, whose methods these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .choices import SessionOptions
from .inference_session import InferenceSession


class Prepared:
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **more: Any) -> list[Any]:
        """The outputs of inputs given in the model's order, by name, or of the only one."""
        names = [end.name for end in self.session.get_inputs()]
        if isinstance(inputs, Mapping):
            feed = dict(inputs)
        elif isinstance(inputs, Sequence):
            feed = dict(zip(names, inputs, strict=False))
        else:
            feed = {names[0]: inputs}
        return self.session.run(None, feed)


class Backend:
    """Runs models of the package `onnx` by onert; options of onert may be given by name."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **more: Any) -> bool:
        """Whether a model can be read and compiled is found out by `prepare`."""
        return cls.supports_device(device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.upper() == "CPU"

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> Prepared:
        """A ModelProto, its bytes, or a path, compiled. ArgumentError where that is not possible."""
        content = model.SerializeToString() if hasattr(model, "SerializeToString") else model
        choices = SessionOptions()
        choices.onert = options
        return Prepared(InferenceSession(content, choices))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> list[Any]:
        """The outputs of a model, which is compiled for this run."""
        return cls.prepare(model, device, **options).run(inputs)
