"""Products of bytes whose exact sums become real numbers."""
