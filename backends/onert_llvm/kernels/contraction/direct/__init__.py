"""Convolutions that multiply where the input lies: depthwise, one row, three dimensions."""
