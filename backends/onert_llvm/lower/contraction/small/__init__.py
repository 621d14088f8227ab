"""Layers of bytes on processors with word-sized registers."""
