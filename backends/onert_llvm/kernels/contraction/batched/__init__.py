"""Products of two operands that are both computed."""
