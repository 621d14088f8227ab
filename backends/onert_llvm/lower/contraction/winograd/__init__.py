"""Lowers convolutions by Winograd's minimal filtering."""
