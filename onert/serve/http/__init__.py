"""The protocol over HTTP: what connections may do, and what paths answer."""
