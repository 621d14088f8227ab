"""Copies, views, gathers and variables to commands."""
