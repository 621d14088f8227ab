"""A picture to draw onto, resized so that lines and letters are legible, with a legend below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field

from onert.ir import Array
from onert.tools.inputs.pictures import pillow

from .fonts import font_for
from .palette import BLACK, WHITE, Color, ink_on

SMALLEST, LARGEST = 640, 4096
"""Bounds of the drawing's longest side in pixels: smaller pictures are enlarged, larger ones reduced."""
_LEAST_WIDTH = 320
"""The least width of a drawing with a legend."""
_FEW = 64
"""Pictures whose longest side has fewer pixels are enlarged without blurring the pixels."""

Rectangle = tuple[int, int, int, int]


@define(eq=False)
class Canvas:
    """A drawing of `width` x `height` pixels. `size` is the font size."""

    image: Any
    size: int
    labels: list[Rectangle] = field(factory=list)

    @classmethod
    def of(cls, pixels: Array) -> Canvas:
        """A canvas with the picture, enlarged or reduced as needed."""
        image_type = pillow()
        height, width = pixels.shape[:2]
        scale = min(max(1.0, SMALLEST / max(height, width)), LARGEST / max(height, width))
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        how = image_type.Resampling.NEAREST if max(height, width) < _FEW else image_type.Resampling.BICUBIC
        image = image_type.fromarray(np.ascontiguousarray(pixels))
        return cls(image if scale == 1 else image.resize(size, how), max(14, round(max(size) / 44)))

    @property
    def width(self) -> int:
        return int(self.image.width)

    @property
    def height(self) -> int:
        return int(self.image.height)

    @property
    def stroke(self) -> int:
        """The width of lines."""
        return max(2, self.size // 6)

    def font(self, words: str = "") -> Any:
        """A font that has the letters of `words`."""
        return font_for(words, self.size)

    @property
    def pen(self) -> Any:
        from PIL import ImageDraw  # noqa: PLC0415 # optional

        return ImageDraw.Draw(self.image)

    def frame(self, box: Rectangle, color: Color) -> None:
        """Draw a box in a colour, between thin contrasting lines that make it visible on any background."""
        stroke = min(self.stroke, max(1, min(box[2] - box[0], box[3] - box[1]) // 6))
        left, top, right, bottom = box
        edge = ink_on(color)
        pen = self.pen
        if stroke > 1:
            pen.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=edge)
            if right - left > 4 * stroke and bottom - top > 4 * stroke:
                pen.rectangle((left + stroke, top + stroke, right - stroke, bottom - stroke), outline=edge)
        pen.rectangle(box, outline=color, width=stroke)

    def label(self, box: Rectangle, name: str, score: str, color: Color) -> bool:
        """Draw a name and a score on a coloured ground above, inside or below a box, without covering another label.
        Returns whether there was room. A name that would take more than a third of the picture is shortened."""
        font, gap = self.font(name), max(2, self.size // 5)
        room = max(self.width // 3, min(self.width, 12 * self.size)) - font.getlength(f" {score}") - 2 * gap
        words = f"{shortened(name, font, round(room))} {score}"
        wide, high = round(font.getlength(words)) + 2 * gap, round(self.size * 1.35)
        left = min(max(box[0], 0), max(self.width - wide, 0))
        tops = [box[1] - high, box[1], box[3] - high, box[3]]
        for top in tops:
            place = (left, top, left + wide, top + high)
            if top < 0 or place[3] > self.height or any(_overlap(place, other) for other in self.labels):
                continue
            self.labels.append(place)
            pen = self.pen
            pen.rectangle(place, fill=color, outline=ink_on(color))
            pen.text((left + gap, top + high / 2), words, fill=ink_on(color), font=font, anchor="lm")
            return True
        return False

    def legend(self, rows: Sequence[tuple[Color | None, str]]) -> None:
        """Draw rows of a colour and a text below the picture, on white, in as many columns as fit."""
        if not rows:
            return
        image_type = pillow()
        width = max(self.width, _LEAST_WIDTH)
        gap, high = self.size // 2, round(self.size * 1.6)
        fonts = [self.font(words) for _, words in rows]
        square = self.size if any(color is not None for color, _ in rows) else -gap
        cut = [shortened(words, font, width - square - 4 * gap) for (_, words), font in zip(rows, fonts, strict=True)]
        texts = list(zip(cut, fonts, strict=True))
        column = max(round(font.getlength(words)) for words, font in texts) + square + 4 * gap
        columns = min(max(1, width // column), len(rows))
        lines = -(-len(rows) // columns)
        whole = image_type.new("RGB", (width, self.height + lines * high + gap), WHITE)
        whole.paste(self.image, ((width - self.width) // 2, 0))
        below, self.image = self.height + gap // 2, whole
        pen = self.pen
        for at, ((color, _), (words, font)) in enumerate(zip(rows, texts, strict=True)):
            x, y = (at // lines) * column + gap, below + (at % lines) * high
            if color is not None:
                pen.rectangle((x, y + high // 6, x + square, y + high // 6 + square), fill=color, outline=BLACK)
            pen.text((x + square + gap, y + high / 2), words, fill=BLACK, font=font, anchor="lm")


def shortened(words: str, font: Any, width: int) -> str:
    """The words in one line, cut off with an ellipsis if they are too wide."""
    words = " ".join(words.split())[:200]
    if font.getlength(words) <= width:
        return words
    while words and font.getlength(words + "...") > width:
        words = words[:-1]
    return words + "..."


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
