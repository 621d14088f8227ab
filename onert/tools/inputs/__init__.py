"""Inputs of a model: files of tensors, images, videos, sounds and text, or random numbers."""

from .arrays import archive, hdf5_shapes, random, raw, write_hdf5
from .feed import Feed, apart, batches, feed, one_of, together
from .files import PIPED, Stream, from_file, stream
from .images import MODES, image, plane_of
from .input_values import InputValue, ReadSettings
from .pictures import IMAGES
from .placing import Fit
from .recordings import MAX_RATE, SOUNDS
from .sounds import sound, takes_sound
from .texts import TEXTS, takes_text, text
from .videos import VIDEOS

__all__ = [
    "IMAGES",
    "MAX_RATE",
    "MODES",
    "PIPED",
    "SOUNDS",
    "TEXTS",
    "VIDEOS",
    "Feed",
    "Fit",
    "InputValue",
    "ReadSettings",
    "Stream",
    "apart",
    "archive",
    "batches",
    "feed",
    "from_file",
    "hdf5_shapes",
    "image",
    "one_of",
    "plane_of",
    "random",
    "raw",
    "sound",
    "stream",
    "takes_sound",
    "takes_text",
    "text",
    "together",
    "write_hdf5",
]
