"""Reports of the commands: measurements, profiles, progress, memory of bundles."""
