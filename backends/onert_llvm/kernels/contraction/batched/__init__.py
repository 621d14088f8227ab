"""Products of two operands that are both computed at run time."""
