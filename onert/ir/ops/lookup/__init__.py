"""Tables, hashes, text processing and decision trees."""
