"""The models that a container holds, and which of them it is loaded as."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import evolve

from onert.frontend.flatbuffer import Data, identifier
from onert.frontend.tflite import FORMAT as TFLITE
from onert.ir import ModelError, Package

MAX_MODELS = 256
"""How many sections or models a container may have."""
MAIN = "tf_lite_prefill_decode"
"""What the model is called that reads prompts and gives the scores of tokens, where there are others beside it."""


def by_name(found: Iterable[tuple[str, Data]]) -> dict[str, Data]:
    """The models by their names, in small letters; ModelError where two have the same, or one is no TFLite model."""
    models: dict[str, Data] = {}
    for name, data in found:
        key = name.lower()
        if key in models:
            raise ModelError(f"there are two models called {key!r}")
        if len(data) < 8 or identifier(data) != b"TFL3":
            raise ModelError(f"the model {key!r} begins with {bytes(data[:8])!r}, expected a TFLite model")
        models[key] = data
    return models


def main_model(models: dict[str, Data], path: Path | None) -> Package:
    """The only model, or the one called `MAIN`; ModelError where there is neither."""
    if len(models) != 1 and MAIN not in models:
        names = ", ".join(map(repr, models)) or "none"
        raise ModelError(
            f"it holds the models {names}, expected one, or one called {MAIN!r}; load the bytes of one that "
            "onert.frontend.containers.reading.models gives"
        )
    name = MAIN if MAIN in models else next(iter(models))
    try:
        package = TFLITE.load(models[name], None)
    except ModelError as error:
        raise ModelError(f"model {name!r}: {error}") from error
    return evolve(package, name=path.stem if path is not None else "", model_names=(name,))
