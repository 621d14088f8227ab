"""The process that onert runs in: imports, forks, caches, and budgets for untrusted files."""
