"""The models in a container, and the choice of the one to load."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import evolve

from onert.frontend.flatbuffer import Data, identifier
from onert.frontend.tflite import FORMAT as TFLITE
from onert.ir import ModelError, Package

MAX_MODELS = 256
"""The maximum number of sections or models in a container."""
MAIN = "tf_lite_prefill_decode"
"""The model that reads prompts and computes token scores; loaded if the container holds several models."""


def by_name(found: Iterable[tuple[str, Data]]) -> dict[str, Data]:
    """The models by lower-case name. Raises ModelError if a name occurs twice or a model is not TFLite."""
    models: dict[str, Data] = {}
    for name, data in found:
        key = name.lower()
        if key in models:
            raise ModelError(f"it holds two models named {key!r}")
        if len(data) < 8 or identifier(data) != b"TFL3":
            raise ModelError(f"the model {key!r} begins with {bytes(data[:8])!r}, expected a TFLite model")
        models[key] = data
    return models


def main_model(models: dict[str, Data], path: Path | None) -> Package:
    """The only model, or the one named `MAIN`. Raises ModelError if there is neither."""
    if len(models) != 1 and MAIN not in models:
        names = ", ".join(map(repr, models)) or "none"
        raise ModelError(
            f"it holds the models {names}, expected a single model or one named {MAIN!r}; to load another, pass "
            "its bytes from onert.frontend.containers.reading.models to onert.load"
        )
    name = MAIN if MAIN in models else next(iter(models))
    try:
        package = TFLITE.load(models[name], None)
    except ModelError as error:
        raise ModelError(f"model {name!r}: {error}") from error
    return evolve(package, name=path.stem if path is not None else "", model_names=(name,))
