"""How long runs take: what the machine can do at best, what is expected of a model, and what was measured."""
