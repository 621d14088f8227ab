"""Nodes of TreeEnsembleRegressor and TreeEnsembleClassifier, with inputs from a fixed random seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from frontend.onnx_domain_cases import LEARNING, floats

_TREE = {
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
    "nodes_treeids": [0] * 5,
    "nodes_nodeids": [0, 1, 2, 3, 4],
    "nodes_featureids": [0, 0, 2, 0, 0],
    "nodes_values": [0.1, 0.0, -0.3, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 3, 0, 0],
    "nodes_falsenodeids": [2, 0, 4, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0],
}


def _votes(side: str, targets: list[int], weights: list[float]) -> dict[str, Any]:
    """One vote for each leaf, or two for each."""
    leaves = [at for at in (1, 3, 4) for _ in range(len(targets) // 3)]
    return {
        f"{side}_treeids": [0] * len(leaves),
        f"{side}_nodeids": leaves,
        f"{side}_ids": targets,
        f"{side}_weights": weights,
    }


_X = np.concatenate([floats(6, 3), np.array([[np.nan, 0, 1]], np.float32)])
_POSITIVE, _MIXED = [0.9, 0.2, 0.6], [0.9, -0.2, 0.6]
TREES: list[tuple[str, str, tuple[Any, ...], dict[str, Any], int]] = [
    *(
        (
            LEARNING,
            "TreeEnsembleRegressor",
            (_X,),
            {
                **_TREE,
                **_votes("target", targets, weights),
                "n_targets": count,
                "aggregate_function": how,
                **({"base_values": bases} if bases else {}),
                "post_transform": after,
            },
            1,
        )
        for targets, weights, count, how, bases, after in (
            ([0, 0, 1], [1.0, 2.0, 3.0], 2, "SUM", [], "NONE"),
            ([0, 0, 1], [1.0, 2.0, 3.0], 2, "AVERAGE", [], "NONE"),
            ([0, 0, 1], [1.0, 2.0, 3.0], 2, "MIN", [], "NONE"),
            ([0, 0, 1], [1.0, 2.0, 3.0], 2, "MAX", [], "NONE"),
            ([1, 1, 1], [1.0, 2.0, 3.0], 3, "SUM", [0.5, 0.25, 4.0], "NONE"),
            ([1, 1, 1], [1.0, 2.0, 3.0], 2, "MAX", [0.5, 0.25], "LOGISTIC"),
            ([0, 0, 0], [1.0, 2.0, 3.0], 1, "SUM", [0.5], "LOGISTIC"),
            ([0, 0, 0], [1.0, 2.0, 3.0], 1, "SUM", [], "SOFTMAX"),
            ([0, 0, 0], [0.1, 0.7, 0.3], 1, "SUM", [], "PROBIT"),
            ([0] * 6, [1.0, 8.0, 2.0, 8.0, 3.0, 8.0], 1, "SUM", [], "NONE"),
        )
    ),
    *(
        (
            LEARNING,
            "TreeEnsembleClassifier",
            (_X,),
            {
                **_TREE,
                **_votes("class", targets, weights),
                "classlabels_int64s": labels,
                **({"base_values": bases} if bases else {}),
                "post_transform": after,
            },
            2,
        )
        for targets, weights, labels, bases, after in (
            ([0, 1, 2], [0.5, 0.25, 0.125], [3, 4, 5], [], "NONE"),
            ([0, 1, 2], [0.5, 0.25, 0.125], [3, 4, 5], [], "SOFTMAX"),
            ([1, 1, 1], [-0.5, -0.25, 0.125], [3, 4, 5], [], "NONE"),
            ([1, 1, 1], [-0.5, -0.25, 0.125], [3, 4, 5], [0.1, 0.2, 0.3], "NONE"),
            ([0, 0, 0], _POSITIVE, [0, 1], [], "NONE"),
            ([0, 0, 0], _POSITIVE, [0, 1], [], "LOGISTIC"),
            ([0, 0, 0], _POSITIVE, [0, 1], [], "SOFTMAX"),
            ([0, 0, 0], _MIXED, [0, 1], [], "LOGISTIC"),
            ([0, 0, 0], _MIXED, [5, 7], [0.3], "SOFTMAX_ZERO"),
            ([0, 0, 0], _POSITIVE, [5, 7], [0.3], "NONE"),
            ([0, 0, 0], _POSITIVE, [5, 7], [-0.3, 0.4], "SOFTMAX"),
            ([1, 1, 1], _POSITIVE, [0, 1], [], "NONE"),
            ([1, 1, 1], _MIXED, [0, 1], [], "LOGISTIC"),
            ([1, 1, 1], _POSITIVE, [5, 7], [0.3], "NONE"),
            ([1, 1, 1], _POSITIVE, [5, 7], [0.3, 0.4], "LOGISTIC"),
            ([0, 1] * 3, [0.2, 0.8, 0.7, -0.3, 0.4, 0.6], [5, 7], [], "NONE"),
            ([0, 1] * 3, [0.2, 0.8, -0.7, 0.3, -0.4, 0.6], [0, 1], [0.3], "SOFTMAX"),
            ([0, 1] * 3, [0.2, 0.8, -0.7, 0.3, -0.4, 0.6], [0, 1], [0.3, 0.4], "LOGISTIC"),
        )
    ),
]
