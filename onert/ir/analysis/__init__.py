"""Analyses of graphs: types, costs, validity, values."""
