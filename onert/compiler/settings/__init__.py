"""Options as users and packages write them: names, types, and what a package may set."""
