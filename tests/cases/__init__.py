"""Cases of every operation, one family a file: the one table that every test of operations reads.

Each module has `CASES: list[Case]`; `all_cases()` gathers them.
"""
