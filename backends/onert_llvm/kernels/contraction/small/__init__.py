"""Products of bytes on processors without vectors, or with Helium's: few registers, little code, no cache."""
