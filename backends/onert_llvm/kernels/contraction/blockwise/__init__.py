"""Products whose weights have a scale for each run of terms."""
