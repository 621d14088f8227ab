"""Products of bytes for processors without vectors, or with Helium's: few registers, little code, no cache."""
