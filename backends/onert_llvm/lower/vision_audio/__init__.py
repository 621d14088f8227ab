"""Resizing, detection and Fourier transforms to commands."""
