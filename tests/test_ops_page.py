"""The page of operators is what its script writes."""

from __future__ import annotations

from shared_material import REPOSITORY


def test_the_page_is_up_to_date() -> None:
    from ops_table import lines  # needs the schema of a peer, or skips

    page = (REPOSITORY / "docs" / "ops.md").read_text(encoding="utf-8").splitlines()
    assert page == list(lines()), "run `python tests/ops_table.py > docs/ops.md`"
