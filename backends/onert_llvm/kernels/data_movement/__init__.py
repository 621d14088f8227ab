"""Copies: strided, by rows, by indices."""
