"""Inputs of a model: files of tensors, images, videos, sounds and text, or random numbers.

Modules for kinds of files are imported when a name of theirs is used.
"""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

from .feed import Feed, apart, batches, feed, one_of, together
from .input_values import MAX_RATE, MODES, InputValue, ReadSettings, Stream
from .placing import Fit
from .suffixes import IMAGES, PIPED, SOUNDS, TEXTS, VIDEOS

if TYPE_CHECKING:
    from .arrays import archive, archive_shapes, hdf5_shapes, random, raw, write_hdf5
    from .files import from_file, stream
    from .images import image, plane_of
    from .sounds import sound, takes_sound
    from .texts import takes_text, text

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
    "archive_shapes",
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

__getattr__ = later(
    __name__,
    {
        **dict.fromkeys(
            ("archive", "archive_shapes", "hdf5_shapes", "random", "raw", "write_hdf5"), "onert.tools.inputs.arrays"
        ),
        **dict.fromkeys(("from_file", "stream"), "onert.tools.inputs.files"),
        **dict.fromkeys(("image", "plane_of"), "onert.tools.inputs.images"),
        **dict.fromkeys(("sound", "takes_sound"), "onert.tools.inputs.sounds"),
        **dict.fromkeys(("takes_text", "text"), "onert.tools.inputs.texts"),
    },
)
