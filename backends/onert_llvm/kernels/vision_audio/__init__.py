"""Resizing, detection, Fourier transforms."""
