"""Ahead of time: objects, entry points and constants of a bundle."""
