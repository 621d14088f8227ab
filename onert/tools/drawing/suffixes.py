"""The suffixes of the files that drawn pictures are written to."""

WRITTEN = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
"""Suffixes of pictures."""
FILMS = (".mp4", ".mkv", ".mov", ".avi", ".webm")
"""Suffixes of videos."""
