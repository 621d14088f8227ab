"""The suffixes of the files that inputs are read from."""

from __future__ import annotations

ARRAYS = frozenset({".npy"})
IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})
VIDEOS = frozenset({".mp4", ".mkv", ".mov", ".avi", ".webm", ".m4v", ".mpg", ".mpeg", ".ts"})
WAVES = frozenset({".wav"})
SOUNDS = WAVES | {".flac", ".ogg", ".mp3", ".aiff", ".aif"}
TEXTS = frozenset({".txt"})

PIPED = "-"
"""The name of standard input."""
