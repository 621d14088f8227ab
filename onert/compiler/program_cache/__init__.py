"""Compiled programs on disk: their key, their encoding, and finding them again."""
