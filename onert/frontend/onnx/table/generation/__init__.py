"""Importers of what generates sequences: attention to caches, and searches."""
