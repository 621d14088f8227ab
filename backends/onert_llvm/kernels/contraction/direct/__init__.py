"""Convolutions that multiply the input in place: depthwise, one row, three dimensions."""
