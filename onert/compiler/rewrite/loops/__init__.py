"""Tools for the pass that encloses loops."""
