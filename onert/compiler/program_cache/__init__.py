"""The on-disk cache of compiled programs: keys, encoding and lookup."""
