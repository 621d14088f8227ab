"""Tables and hashes of strings and numbers."""
