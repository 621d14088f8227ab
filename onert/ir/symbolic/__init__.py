"""Numbers of lengths that are not known yet."""
