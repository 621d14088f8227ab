"""Fonts for any script: Pillow's own if it has the letters, otherwise one of the system's."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from onert.ir import OnertWarning

MOST_FILES = 4000
"""The most system fonts that are searched."""
LATIN = 0x7E
"""The last character that every font is assumed to have."""
_SUFFIXES = (".ttf", ".otf", ".ttc")
_USUAL = ("notosanscjk", "notosans", "dejavusans", "arialunicode", "unifont")
"""Prefixes of the names of fonts with many scripts, in lower case without dashes, spaces and underscores."""
_PROBED = 24
"""The size in pixels at which fonts are tested for letters."""
_NO_LETTER = "\U0010ffff"
"""A character that no font has."""


def font_for(words: str, size: int) -> Any:
    """A font of `size` pixels that has the letters of `words`, if there is one.

    Pillow's own font has Latin letters. For others, the fonts in the system's usual folders are searched. If none has
    all letters, the one that lacks the fewest is used with an OnertWarning.
    """
    letters = frozenset(letter for letter in words if ord(letter) > LATIN and not letter.isspace())
    path, lacking = _chosen(letters) if letters else (None, "")
    if lacking:
        warnings.warn(
            "no installed font has all letters of the labels, so boxes replace some; Noto Sans CJK has most letters",
            OnertWarning,
            stacklevel=2,
        )
    return _own(size) if path is None else _opened(path, size)


def folders() -> tuple[Path, ...]:
    """The system's font folders: those of fontconfig's default configuration, of macOS or of Windows."""
    home = Path.home()
    if sys.platform == "darwin":
        return (home / "Library/Fonts", Path("/Library/Fonts"), Path("/System/Library/Fonts"))
    if sys.platform == "win32":
        return (Path(os.environ.get("WINDIR", "C:/Windows")) / "Fonts",)
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    return (data / "fonts", home / ".fonts", Path("/usr/local/share/fonts"), Path("/usr/share/fonts"))


@cache
def _own(size: int) -> Any:
    from PIL import ImageFont  # noqa: PLC0415 # optional

    return ImageFont.load_default(size)


@cache
def _opened(path: Path, size: int) -> Any:
    from PIL import ImageFont  # noqa: PLC0415 # optional

    return ImageFont.truetype(str(path), size)


@cache
def _chosen(letters: frozenset[str]) -> tuple[Path | None, str]:
    """The font that lacks the fewest of these letters (None for Pillow's own), and the letters that it lacks."""
    best: tuple[Path | None, str] = None, _lacking(_own(_PROBED), letters)
    for path in _files():
        if not best[1]:
            break
        try:
            lacking = _lacking(_opened(path, _PROBED), letters)
        except (OSError, ValueError):
            continue  # not a font, or unreadable
        if len(lacking) < len(best[1]):
            best = path, lacking
    return best


def _lacking(font: Any, letters: frozenset[str]) -> str:
    """The letters that a font renders like a character that it does not have."""
    missing = bytes(font.getmask(_NO_LETTER))
    return "".join(sorted(letter for letter in letters if bytes(font.getmask(letter)) == missing))


@cache
def _files() -> tuple[Path, ...]:
    """The system's fonts, with plain sans-serif ones first because they are the most legible."""
    found = [path for folder in folders() for path in _under(folder)]
    return tuple(sorted(found[:MOST_FILES], key=_rank))


def _under(folder: Path) -> Iterator[Path]:
    for place, inner, names in os.walk(folder):
        inner.sort()
        yield from (Path(place, name) for name in sorted(names) if name.lower().endswith(_SUFFIXES))


def _rank(path: Path) -> tuple[int, bool, bool, str]:
    name = path.stem.lower().replace("-", "").replace("_", "").replace(" ", "")
    usual = next((at for at, start in enumerate(_USUAL) if name.startswith(start)), len(_USUAL))
    styled = any(
        style in name for style in ("bold", "italic", "oblique", "light", "thin", "black", "mono", "condensed")
    )
    return usual, styled, "serif" in name and "sans" not in name, name
