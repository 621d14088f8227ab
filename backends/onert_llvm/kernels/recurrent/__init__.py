"""Layers with a state."""
