"""Options as users and packages write them: names, types, and which of them a package may set."""
