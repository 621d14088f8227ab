"""Products of bytes whose exact sums are converted to real numbers."""
