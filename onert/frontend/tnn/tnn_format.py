"""The format of TNN models: how a structure is recognised and combined with its weights.

The weights of a structure `name.tnnproto` are in `name.tnnmodel` beside it. A structure by itself can be loaded with
random weights, as TNN's own benchmark does, because a model's run time hardly depends on them.
"""

from __future__ import annotations

import re
from pathlib import Path

from onert.frontend.files import open_file, reason
from onert.frontend.flatbuffer import Data
from onert.frontend.format import Format
from onert.ir import ModelError, Package
from onert.ir.process import imports

WEIGHTS = ".tnnmodel"
_HEAD = re.compile(rb'"?\s*1\s+\d+\s+1\s+(42[0-9]*)')
_MAGIC = (b"4206624770", b"4206624772")


def _recognize(head: bytes, path: Path | None) -> bool:
    """The first line is `1 BLOBS 1 MAGIC`; the first bytes of a file may contain only a part of the magic number."""
    found = _HEAD.match(head)
    return found is not None and any(magic.startswith(found[1]) for magic in _MAGIC)


_RANDOM = "onert.frontend.tnn.load(path, random_weights=0)"
"""How to load a structure without its weights, for messages."""


def _load(data: Data, path: Path | None) -> Package:
    if path is None:
        what = "the weights of a TNN structure are in another file, which cannot be found from bytes"
        raise ModelError(f"{what}: load it from a path, or use onert.frontend.tnn.load and random_weights")
    beside = path.with_suffix(WEIGHTS)
    if not beside.exists():
        raise ModelError(f"its weights are missing: there is no {beside.name} beside it; {_RANDOM} uses random ones")
    try:
        weights = open_file(beside).data
    except ModelError as error:
        raise ModelError(f"{beside.name}: {error}") from error
    model = imports.module("onert.frontend.tnn.model")
    return Package((model.read_model(data, model.stored_weights(weights, beside.name)),), model_names=(path.name,))


def load(path: str | Path, *, random_weights: int | None = None) -> Package:
    """The package of a `.tnnproto` file.

    With `random_weights`, a seed of at least 0, no `.tnnmodel` is read: weights are drawn from a distribution that
    keeps values of the order of 1 through the layers, the same ones for the same seed. Without it, like `onert.load`.

    Raises ModelError with the file's name if a file is missing or malformed, or has unsupported layers.
    """
    place = Path(path)
    try:
        data = open_file(place).data
        if not _recognize(bytes(data[:64]), place):
            raise ModelError(f"begins with {bytes(data[:8])!r}, expected the first line of a TNN structure")
        if random_weights is None:
            package = _load(data, place)
        else:
            if random_weights < 0:
                raise ModelError(f"random_weights is {random_weights}, expected at least 0")
            model = imports.module("onert.frontend.tnn.model")
            weights = model.RandomWeights(random_weights)
            package = Package((model.read_model(data, weights),), model_names=(place.name,))
    except ModelError as error:
        raise ModelError(f"{place}: {error}") from error
    except OSError as error:
        raise ModelError(f"{place}: cannot be read: {reason(error)}") from error
    except MemoryError as error:
        raise ModelError(f"{place}: there is not enough memory to read it") from error
    return Package(package.models, place.stem, model_names=package.model_names)


FORMAT = Format("tnn", _recognize, _load)
