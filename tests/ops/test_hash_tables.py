"""Hash tables are filled once per execution and belong to it alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from model_writer import LiteRt, Model

import onert
from onert.ir import Array, DType

WORDS = np.array([b"cat", b"dog", b"", b"a longer word"], object)
NUMBERS = np.array([5, -7, 0, 2**40], np.int64)


def _model(keys: Array, values: Array, *, fill: bool = True) -> bytes:
    """A model whose hash table is filled by a CallOnce subgraph; it returns the found values and the table's size."""
    model = Model()
    main, start = model.graph(), model.graph("start")
    key, value = (DType.STRING if a.dtype == object else DType.INT64 for a in (keys, values))
    options = (
        "HashtableOptions",
        {"tableId": 3, "keyDtype": 5 if key is DType.STRING else 4, "valueDtype": 5 if value is DType.STRING else 4},
    )
    wanted = main.input(key, (6,))
    missing = main.constant(np.array([values[1]], values.dtype), value)
    table, found, size = main.tensor(DType.RESOURCE, (1,)), main.tensor(value, (6,)), main.tensor(DType.INT64, (1,))
    if fill:
        main.operator("CALL_ONCE", [], [], ("CallOnceOptions", {"initSubgraphIndex": 1}))
    main.operator("HASHTABLE", [], [table], options)
    main.operator("HASHTABLE_FIND", [table, wanted, missing], [found], ("HashtableFindOptions", {}))
    main.operator("HASHTABLE_SIZE", [table], [size], ("HashtableSizeOptions", {}))
    main.outputs(found, size)
    here = start.tensor(DType.RESOURCE, (1,))
    start.operator("HASHTABLE", [], [here], options)
    given = [here, start.constant(keys, key), start.constant(values, value)]
    start.operator("HASHTABLE_IMPORT", given, [], ("HashtableImportOptions", {}))
    return model.done()


def _execution(model: bytes) -> Any:
    return onert.Execution(onert.compile(onert.load(model)))


@pytest.mark.parametrize(("keys", "values"), [(WORDS, NUMBERS), (NUMBERS, WORDS)], ids=["by word", "by number"])
def test_hash_table_lookups_equal_litert(keys: Array, values: Array) -> None:
    model = _model(keys, values)
    other = np.array([b"bird" if keys.dtype == object else 99], keys.dtype)
    wanted = np.concatenate([keys, other, keys[:1]])
    theirs, mine = LiteRt(model), _execution(model)
    for _ in range(2):
        for a, b in zip(mine.run([wanted]).values(), theirs(wanted), strict=True):
            np.testing.assert_array_equal(a, b)


def test_reading_an_unfilled_hash_table_raises() -> None:
    with pytest.raises(onert.OnertError, match="hash table 3 is read before it was filled"):
        _execution(_model(WORDS, NUMBERS, fill=False)).run([np.concatenate([WORDS, WORDS[:2]])])
