"""What a compiled program looks like: tables and pictures."""
