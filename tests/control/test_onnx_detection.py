"""Detector heads run natively: per class the boxes above a score, the best of them, and non-maximum suppression.

The graph is what torchvision exports: each class keeps the boxes that pass, up to a limit; all classes are
concatenated, shifted apart by class, and a branch handles the case of no boxes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_peer import precise_session

import onert

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is the peer")

BOXES, CLASSES, MOST = 40, 3, 25
_CLASS = """
    at{c} = Constant <value_int = {c}> ()
    s{c} = Gather <axis = 1> (scores, at{c})
    passed{c} = Greater (s{c}, bound)
    found{c} = NonZero (passed{c})
    places{c} = Transpose <perm = [1, 0]> (found{c})
    kept{c} = GatherND (s{c}, places{c})
    own{c} = GatherND (boxes, places{c})
    count{c} = Shape (kept{c})
    both{c} = Concat <axis = 0> (most, count{c})
    least{c} = ReduceMin <keepdims = 0> (both{c})
    k{c} = Reshape (least{c}, one_row)
    best{c}, which{c} = TopK (kept{c}, k{c})
    box{c} = Gather (own{c}, which{c})
    size{c} = Shape (best{c})
    label{c} = ConstantOfShape <value = int64[1] {{{c}}}> (size{c})
"""
_HEAD = """<ir_version: 8, opset_import: ["" : 17]>
head (float[{n}, {classes}] scores, float[{n}, 4] boxes) => (all_boxes, all_scores, all_labels)
<float bound = {{0.5}}, int64[1] most = {{{most}}}, int64[1] one_row = {{-1}}, int64 none = {{0}}, float one = {{1}},
 int64[1] first = {{0}}, int64[1] second = {{1}}, int64[2] both_first = {{0, 1}}, int64[1] any = {{2147483648}},
 float[1] shared = {{0.5}}, int64 third = {{2}}, int64[1] few = {{9}}> {{
{classes_text}
    b = Concat <axis = 0> ({boxes})
    s = Concat <axis = 0> ({bests})
    l = Concat <axis = 0> ({labels})
    shape = Shape (b)
    elements = ReduceProd <keepdims = 0> (shape)
    empty = Equal (elements, none)
    keep = If (empty) <
      then_branch = nothing () => (int64[k0] kept_none) {{ kept_none = Constant <value = int64[0] {{}}> () }},
      else_branch = some () => (int64[k1] kept_some) {{
        far = ReduceMax <keepdims = 0> (b)
        label = Cast <to = 1> (l)
        step = Add (far, one)
        offset = Mul (label, step)
        offsets = Unsqueeze (offset, second)
        apart = Add (b, offsets)
        b3 = Unsqueeze (apart, first)
        s3 = Unsqueeze (s, both_first)
        triples = NonMaxSuppression (b3, s3, any, shared)
        column = Gather <axis = 1> (triples, third)
        kept_some = Identity (column)
      }}>
    best = Slice (keep, first, few, first)
    all_boxes = Gather (b, best)
    all_scores = Gather (s, best)
    all_labels = Gather (l, best)
}}"""


def _model() -> bytes:
    names = [", ".join(f"{name}{c}" for c in range(CLASSES)) for name in ("box", "best", "label")]
    text = _HEAD.format(
        n=BOXES,
        classes=CLASSES,
        most=MOST,
        classes_text="".join(_CLASS.format(c=c) for c in range(CLASSES)),
        boxes=names[0],
        bests=names[1],
        labels=names[2],
    )
    content: bytes = onnx.parser.parse_model(text).SerializeToString()
    return content


def _inputs(highest: float) -> dict[str, Any]:
    draw = np.random.default_rng(7)
    corners = np.sort(draw.uniform(0, 10, (BOXES, 2, 2)), axis=1).reshape(BOXES, 4).astype(np.float32)
    scores = draw.uniform(0, highest, (BOXES, CLASSES)).astype(np.float32)
    scores[3] = scores[5]  # boxes with equal scores
    return {"scores": scores, "boxes": corners}


def test_a_multi_class_detection_head_is_native_and_matches_onnx_runtime() -> None:
    content = _model()
    program = onert.compile(onert.load(content))
    steps = [step for routine in program.routines for step in routine.steps if step.backend != "llvm"]
    operations = [routine.subgraph.operations for routine in program.routines]
    labels = {operations[0][at].op.label for step in steps for at in step.sequence.operations}
    assert labels == {"FirstEntries"}  # for the results, whose lengths only the run determines
    session, execution = precise_session(content), onert.Execution(program)
    for highest in (1.0, 0.51, 0.4):  # many, some and none pass
        inputs = _inputs(highest)
        for mine, theirs in zip(execution.run(inputs).values(), session.run(None, inputs), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_boxes_scored_minus_infinity_are_selected_when_no_score_threshold_is_given() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[6] scores, float[6, 4] boxes, bool[6] given) => (triples)
    <int64[1] first = {0}, int64[2] both = {0, 1}, int64[1] any = {9}, float[1] shared = {0.5}> {
        s = Compress (scores, given)
        b = Compress <axis = 0> (boxes, given)
        s3 = Unsqueeze (s, both)
        b3 = Unsqueeze (b, first)
        triples = NonMaxSuppression (b3, s3, any, shared)
    }"""
    content = onnx.parser.parse_model(text).SerializeToString()
    scores = np.float32([0.5, -np.inf, 2, -3, 7, np.finfo(np.float32).min])
    boxes = np.float32([[at, at, at + 1, at + 1] for at in range(6)])
    inputs = {"scores": scores, "boxes": boxes, "given": np.array([1, 1, 1, 1, 0, 0], bool)}
    (mine,) = onert.Execution(onert.compile(onert.load(content))).run(inputs).values()
    assert mine.tolist() == [[0, 0, at] for at in (2, 0, 3, 1)]


def test_boxes_with_features_that_there_are_none_of_are_native() -> None:
    """As Ultralytics exports a detector with its suppression, for features that only masks and poses have."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[9, 4] boxes, float[9] scores, float[9, 0] features) => (rows)
    <float bound = {0.5}, int64[2] column = {-1, 1}, int64[1] first = {0}, int64[2] both = {0, 1}, int64[1] any = {9},
     float[1] shared = {0.5}, int64[1] last = {2}, int64[1] three = {3}, int64[1] one = {1}, int64 width = {5},
     int64 most = {15}, int64[1] flat = {-1}, int64[2] sizes = {3, 5}, int64 zero = {0}> {
        passed = Greater (scores, bound)
        found = NonZero (passed)
        places = Transpose <perm = [1, 0]> (found)
        b = GatherND (boxes, places)
        s = GatherND (scores, places)
        f = GatherND (features, places)
        b3 = Unsqueeze (b, first)
        s3 = Unsqueeze (s, both)
        triples = NonMaxSuppression (b3, s3, any, shared)
        columns = Slice (triples, last, three, one)
        kept = Squeeze (columns, one)
        best = Slice (kept, first, three, first)
        bk = Gather (b, best)
        sk = Gather (s, best)
        sc = Reshape (sk, column)
        fk = Gather (f, best)
        joined = Concat <axis = -1> (bk, sc, fk)
        shape = Shape (joined)
        count = Gather (shape, zero)
        used = Mul (count, width)
        free = Sub (most, used)
        behind = Unsqueeze (free, first)
        pads = Concat <axis = 0> (first, behind)
        line = Reshape (joined, flat)
        padded = Pad (line, pads)
        rows = Reshape (padded, sizes)
    }"""
    content = onnx.parser.parse_model(text).SerializeToString()
    program = onert.compile(onert.load(content))
    assert set(program.backends) == {"llvm"}
    session, execution = precise_session(content), onert.Execution(program)
    for highest in (1.0, 0.4):
        given = _inputs(highest)
        inputs = {"boxes": given["boxes"][:9], "scores": given["scores"][:9, 0], "features": np.zeros((9, 0), "f4")}
        (mine,), (theirs,) = execution.run(inputs).values(), session.run(None, inputs)
        np.testing.assert_array_equal(mine, theirs)
