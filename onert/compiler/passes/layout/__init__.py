"""Passes that move and merge what only lays elements out in another order."""
