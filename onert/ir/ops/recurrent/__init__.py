"""Layers with a state, and their cells."""
