"""Cases of every operation, one family per file: the single table that all tests of operations use.

Each module has `CASES: list[Case]`, which the tests collect from all modules of this package.
"""
