"""The command-line tools and their parts."""
