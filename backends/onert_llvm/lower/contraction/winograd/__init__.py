"""Convolutions by Winograd's minimal filtering to commands."""
