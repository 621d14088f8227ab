"""Broken flow files (200 by default, 2,000 in the long suite) end in a result or one sentence."""

from __future__ import annotations

import pytest
from flow.layouts import GOLDEN, golden
from flow.meanings import MEANINGS, content
from fuzz.batch import findings, lines_of

import onert.flow as myelin
from onert.flow.files import flow_file
from onert.frontend.flow.file import encode

BATCH = 100
MUTANTS, MANY_MUTANTS = 200, 2000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A file for every operation, the golden ones, one of several operations, and some with training steps."""
    folder = tmp_path_factory.mktemp("flows")
    found = [content([meaning]) for meaning in MEANINGS]
    found += [golden(path.stem) for path in sorted(GOLDEN.glob("*.txt"))]
    found.append(content(MEANINGS[::40]))
    found += [_learning()] * 20
    for at, raw in enumerate(found):
        (folder / f"{at}.flow").write_bytes(raw)
    return [str(folder / f"{at}.flow") for at in range(len(found))]


def _learning() -> bytes:
    """Functions that read and assign rows of a table and a column-major matrix."""
    flow = myelin.Flow()
    f = flow.define("f")
    table = f.random_uniform(f.parameter("table", shape=[6, 3]))
    weight = f.random_ortho(f.parameter("weight", shape=[3, 4]))
    words, bag = f.var("words", "int32", [2, 1]), f.var("bag", "int32", [3, 1])
    rows = f.add(f.gather(table, words), f.gather_sum(table, bag))
    f.sum(f.matmul(rows, weight), name="y")
    step = flow.define("step")
    places, given = step.var("places", "int32", [2, 1]), step.var("given", shape=[2, 3])
    weight.col = given.col = True
    step.assign(table, step.add(table, step.scatter(places, given, [6, 3])))
    step.assign_add_scatter(table, places, step.sum(given, 0), batch=0, pooled=True)
    step.assign(weight, step.mul(weight, 0.5))
    return b"".join(encode(flow_file(flow)))


def check(first: int, corpus: list[str]) -> None:
    """Check a batch of mutants, starting at a seed."""
    lines = lines_of("probe", str(first), str(BATCH), *corpus)
    assert len(lines) == BATCH
    assert findings(lines) == []


@pytest.mark.parametrize("first", range(0, MUTANTS, BATCH))
def test_mutated_flows_end_in_a_result_or_one_sentence(first: int, corpus: list[str]) -> None:
    check(first, corpus)


@pytest.mark.long
@pytest.mark.parametrize("first", range(MUTANTS, MANY_MUTANTS, BATCH))
def test_many_mutated_flows_end_in_a_result_or_one_sentence(first: int, corpus: list[str]) -> None:
    check(first, corpus)
