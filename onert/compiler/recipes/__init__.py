"""Programs for lengths that were not seen before, made by the recipe of one that was."""
