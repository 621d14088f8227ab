"""Products of numbers rounded to bfloat16."""
