"""What follows from a graph: types, costs, validity, values."""
