"""Recipes: programs for new lengths, derived from one compilation."""
