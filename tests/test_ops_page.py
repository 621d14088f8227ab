"""The page of operators is up to date."""

from __future__ import annotations

from shared_material import REPOSITORY

from onert.ir import OPS


def test_every_kind_without_a_native_form_is_listed_with_its_reason() -> None:
    from ops_table import OTHERWISE, STAYS

    forms = (REPOSITORY / "tests" / "llvm" / "native_forms.txt").read_text(encoding="utf-8").splitlines()
    native = {line.split()[0].partition(".")[0] for line in forms}
    listed = [kind for groups in (OTHERWISE, STAYS) for kinds in groups.values() for kind in kinds]
    own = {name for name, kind in OPS.items() if kind.__module__.startswith("onert.ir.")}
    assert sorted(listed) == sorted(own - native)


def test_the_page_is_up_to_date() -> None:
    from ops_table import lines  # needs a peer's schema, or skips

    page = (REPOSITORY / "docs" / "ops.md").read_text(encoding="utf-8").splitlines()
    assert page == list(lines()), "run `python tests/ops_table.py > docs/ops.md`"
