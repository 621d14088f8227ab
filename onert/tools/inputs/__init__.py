"""What a model is run on: files of tensors, images and sounds, or random numbers."""

from .arrays import archive, hdf5_shapes, random, raw, write_hdf5
from .files import from_file
from .given import Given, Reading
from .images import IMAGES, image
from .sounds import MAX_RATE, SOUNDS, sound

__all__ = [
    "IMAGES",
    "MAX_RATE",
    "SOUNDS",
    "Given",
    "Reading",
    "archive",
    "from_file",
    "hdf5_shapes",
    "image",
    "random",
    "raw",
    "sound",
    "write_hdf5",
]
