"""Ahead-of-time compilation: objects, entry points and constants of a bundle."""
