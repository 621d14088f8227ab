"""Random nodes drawn from the ONNX standard's definitions, checked against ReferenceEvaluator and ONNX Runtime.

    python -m fuzz.onnx_operators [--seed SEED] [--rounds N] [--only OPERATOR]

Each round draws element types, shapes, inputs and attributes for every version of every operator. Most draws are
invalid: ReferenceEvaluator refuses them and they are skipped. For the others onert must give the same result or refuse
with a sentence; if its result differs, ONNX Runtime decides. Prints the seed, the counts, and each difference with the
arguments that reproduce it.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, defs, helper
from onnx.reference import ReferenceEvaluator
from onnx_cases import difference

KINDS = {
    "float": TensorProto.FLOAT,
    "double": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "uint32": TensorProto.UINT32,
    "bool": TensorProto.BOOL,
    "float16": TensorProto.FLOAT16,
}
"""Element types to draw from."""
LEFT_OUT = {
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}
"""Operators with random results."""
DISPUTED = {
    "BatchNormalization": "float16 is computed in float32 here",
    "CastLike": "negative numbers as unsigned ones are nobody's",
    "GlobalMaxPool": "of two dimensions, none is a plane's",
    "GridSample": "ReferenceEvaluator cuts the weights of integers",
    "Hardmax": "ReferenceEvaluator takes one axis where old versions took all from it on",
    "Mod": "remainders of float16 jump at multiples",
    "Pow": "negative numbers as unsigned ones are nobody's",
    "QLinearMatMul": "a vector has no rows to give scales to",
    "Resize": "with both scales and sizes nothing is said",
    "Unique": "ReferenceEvaluator sorts Y if it is the only output, and takes unsorted slices along axis 0 only",
}
"""Operators for some of whose draws there is no agreed result, with the reason."""
LEAST_VERSION = 7
NUMBERS = {
    "axes": (-2, -1, 0, 1, 2),
    "axis": (-2, -1, 0, 1, 2),
    "repeats": (1, 2, 3),
    "pads": (0, 1, 2),
    "k": (0, 1, 2),
    "starts": (-3, -1, 0, 1),
    "ends": (-1, 1, 2, 9),
    "steps": (1, 2, -1),
    "shape": (-1, 0, 1, 2, 4, 6),
    "depth": (2, 3, 5),
    "split": (1, 2),
    "sizes": (1, 2, 3, 5),
    "indices": (-1, 0, 1),
}
"""Elements of inputs that accept only a few numbers, by input name."""
ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    "mode": ("constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic", "DCR", "CRD"),
    "direction": ("LEFT", "RIGHT", "forward", "reverse", "bidirectional"),
    "reduction": ("none", "add", "mul", "max", "min", "mean", "sum"),
    "approximate": ("none", "tanh"),
    "equation": ("ij,jk->ik", "i,i", "...ij->...ji", "ii->i", "bij,bjk->bik"),
    "perm": ((0,), (1, 0), (0, 2, 1), (2, 0, 1), (3, 1, 0, 2)),
    "kernel_shape": ((1,), (2,), (3,), (2, 2), (3, 2)),
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "to": (1, 6, 7, 9, 11),
    "blocksize": (1, 2),
    "hidden_size": (2, 3),
}


def schemas(only: str | None) -> list[Any]:
    """All versions of all operators without graphs, except versions superseded before opset 7."""
    found = [
        s
        for s in defs.get_all_schemas_with_history()
        if s.domain == "" and not s.deprecated and s.name not in LEFT_OUT and only in (None, s.name)
    ]
    newest = {s.name: max(o.since_version for o in found if o.name == s.name) for s in found}
    plain = (s for s in found if all(a.type.name not in ("GRAPH", "TYPE_PROTO") for a in s.attributes.values()))
    kept = (s for s in plain if s.since_version >= LEAST_VERSION or s.since_version == newest[s.name])
    return sorted(kept, key=lambda s: (s.name, s.since_version))


def drawn(rng: random.Random, schema: Any) -> tuple[bytes, dict[str, Any], list[Any]] | None:
    """A model of one node, its inputs and its outputs' types; None if no drawable type is allowed."""
    types = {}
    for constraint in schema.type_constraints:
        allowed = [t[7:-1] for t in constraint.allowed_type_strs if t.startswith("tensor(") and t[7:-1] in KINDS]
        if not allowed:
            return None
        types[constraint.type_param_str] = rng.choice(allowed if rng.random() < 0.5 else allowed[:1])
    shape = [rng.randint(1, 4) for _ in range(rng.choice((1, 2, 2, 3, 3, 4, 4)))]
    feed, names = {}, []
    for at, formal in enumerate(schema.inputs):
        if formal.option.name == "Optional" and rng.random() < 0.5:
            names.append("")
            continue
        for more in range(rng.randint(1, 3) if formal.option.name == "Variadic" else 1):
            kind = types.get(formal.type_str, formal.type_str[7:-1])
            if kind not in KINDS:
                return None
            name = f"x{at}_{more}"
            names.append(name)
            feed[name] = _elements(rng, formal.name, kind, shape if rng.random() < 0.7 else _other(rng, shape))
    while names and not names[-1]:
        names.pop()
    attributes = {n: v for n, a in schema.attributes.items() if (v := _attribute(rng, n, a, len(shape))) is not None}
    outputs = [f"y{at}" for at, o in enumerate(schema.outputs) if at == 0 or rng.random() < 0.5]
    node = helper.make_node(schema.name, names, outputs, **attributes)
    ends = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feed.items()
    ]
    graph = helper.make_graph([node], "drawn", ends, [onnx.ValueInfoProto(name=o) for o in outputs])
    opset = helper.make_opsetid("", max(schema.since_version, LEAST_VERSION))
    content = helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()
    kinds = [KINDS.get(types.get(o.type_str, "")) for o in schema.outputs]
    return content, feed, [None if k is None else helper.tensor_dtype_to_np_dtype(k) for k in kinds]


def _other(rng: random.Random, shape: list[int]) -> list[int]:
    """A shape related to another: some of its trailing dimensions, some of them 1; or an unrelated one."""
    if rng.random() < 0.3:
        return [rng.randint(1, 4) for _ in range(rng.randint(0, 4))]
    return [1 if rng.random() < 0.3 else d for d in shape[rng.randint(0, len(shape)) :]]


def _elements(rng: random.Random, name: str, kind: str, shape: list[int]) -> Any:
    dtype = helper.tensor_dtype_to_np_dtype(KINDS[kind])
    few = NUMBERS.get(name.lower())
    if few is not None and kind in ("int64", "int32"):
        sizes = shape if name.lower() == "indices" else [rng.randint(1, 3)]
        if name.lower() in ("axis", "k", "depth"):
            sizes = []
        return np.array([rng.choice(few) for _ in range(int(np.prod(sizes)))], dtype).reshape(sizes)
    values = np.random.default_rng(rng.getrandbits(32))
    if kind == "bool":
        return values.random(shape) < 0.5
    if kind.startswith(("int", "uint")):
        return values.integers(0 if kind.startswith("u") else -4, 9, shape).astype(dtype)
    return (values.standard_normal(shape) * rng.choice((0.5, 1, 3))).astype(dtype)


def _attribute(rng: random.Random, name: str, schema: Any, rank: int) -> Any:
    """A value, or None to leave the attribute out."""
    if not schema.required and rng.random() < 0.5:
        return None
    if name in ATTRIBUTES:
        return rng.choice(ATTRIBUTES[name])
    match schema.type.name:
        case "INT":
            return rng.choice((-1, 0, 1, 2) if "axis" in name else (0, 1))
        case "FLOAT":
            return rng.choice((0.0, 0.5, 1.0, -1.0, 2.0))
        case "INTS":
            return [rng.choice((0, 1, 1, 2)) for _ in range(rng.choice((1, rank, 2 * max(rank - 2, 1))))]
    return None


def verdict(model: bytes, feed: dict[str, Any], kinds: list[Any]) -> str:
    """How one draw ends: `nothing` (invalid draw), `same`, `as ONNX Runtime`, `refused`, or what differs."""
    from onert import OnertError
    from onert.runtime.session import Backend

    try:
        expected = ReferenceEvaluator(onnx.load_from_string(model)).run(None, dict(feed))
    except Exception:  # any exception means an invalid draw
        return "nothing"
    if not all(isinstance(e, np.ndarray) and k in (None, e.dtype) for e, k in zip(expected, kinds, strict=False)):
        return "nothing"  # a result whose type contradicts the standard does not count
    try:
        mine = Backend.run_model(model, feed, backends=("reference",))
    except OnertError as error:
        return f"refused: {error}"
    wrong = next((w for a, b in zip(mine, expected, strict=False) if (w := difference(a, b, 1e-3, 1e-3))), None)
    if wrong is None:
        return "same"
    try:
        import onnxruntime

        session = onnxruntime.InferenceSession(model)
        theirs = session.run(None, feed)
    except Exception:  # ONNX Runtime lacks some operators and types
        return f"differs: {wrong}"
    if all(difference(a, b, 1e-3, 1e-3) is None for a, b in zip(mine, theirs, strict=True)):
        return "as ONNX Runtime"
    return f"differs: {wrong}"


def draws(seed: int, rounds: int, only: str | None) -> Iterator[tuple[str, str]]:
    """Each draw's name, and how it ended."""
    for number in range(rounds):
        for schema in schemas(only):
            rng = random.Random(f"{seed} {number} {schema.name} {schema.since_version}")
            found = drawn(rng, schema)
            if found is not None:
                ended = verdict(*found)
                if ended.startswith("differs") and schema.name in DISPUTED:
                    ended = "disputed"
                yield f"{schema.name} {schema.since_version}, round {number}", ended


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Random nodes against ReferenceEvaluator and ONNX Runtime.")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="an operator")
    parser.add_argument("--refused", action="store_true", help="list what onert refuses too")
    chosen = parser.parse_args(arguments)
    print("seed", chosen.seed)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    counts: Counter[str] = Counter()
    for name, ended in draws(chosen.seed, chosen.rounds, chosen.only):
        kind = ended.split(":")[0]
        counts[kind] += 1
        if kind == "differs" or (kind == "refused" and chosen.refused):
            print(name, ended)
    print(", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())))
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
