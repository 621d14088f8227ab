"""Tools for writing passes: editing graphs, contracts, effects, layouts, constant tables and run-time sizes."""
