"""Models for testing reports: with content for every part of a page, and with names that are markup."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.ir import DType, Package, Quantization, Signature, SignatureTensor, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

MACHINE = {
    "processor": "a machine",
    "threads": 1,
    "bytes_per_second": 1.5e10,
    "cached_bytes_per_second": 1.2e11,
    "flops_per_second": {"float32": 1.2e11, "int8": 8e11},
}
"""A machine whose peaks need not be measured."""

HOSTILE = {
    "closes the script": "</script><img src=x onerror=window.hit=1>",
    "opens a script": "<script>window.hit=1</script>",
    "ends a comment": "--><script>window.hit=1</script><!--",
    "leaves an attribute": '"><svg onload=window.hit=1>',
    "leaves a quote": "' onmouseover='window.hit=1",
    "is a template": "${window.hit=1}{{window.hit=1}}`",
    "is an address": "javascript:window.hit=1",
    "ends the title": "</title><script>window.hit=1</script>",
    "ends a style": "</style><body onload=window.hit=1>",
    "is a prototype": "__proto__",
    "has separators": "a\u2028b\u2029c\x00d\x1be",
    "turns the direction": "\u202eevil\u202c",
    "is half a character": "\ud800",
    "is long": "x" * 20_000,
    "is empty": "",
}
"""Hostile names that a file may contain, by what they attempt."""


def network(name: str = "network", word: str = "") -> Package:
    """Two signatures, fusible groups, a quantised part, and constants of several kinds; `word` is in every name."""
    rng = np.random.default_rng(5)
    b = Builder(f"main{word}")
    x = b.input(TensorType(DType.FLOAT32, (1, 16)), f"x{word}")
    left = b.add(FullyConnected(), x, b.constant(rng.normal(size=(16, 16)).astype(np.float32), name=f"w{word}"), None)
    right = b.add(FullyConnected(), x, b.constant(np.eye(16, dtype=np.float32), name=f"eye{word}"), None)
    both = b.add(Binary(BinaryKind.ADD), b.add(Unary(UnaryKind.TANH), left), right)
    y = b.add(
        Unary(UnaryKind.RELU), b.add(Binary(BinaryKind.MUL), both, b.constant(np.float32(0.5), name=f"half{word}"))
    )
    q = Quantization((0.1,), (3,))
    z = b.input(TensorType(DType.INT8, (1, 16), q), f"z{word}")
    weight = b.constant(rng.integers(-9, 9, (4, 16)).astype(np.int8), q, name=f"stored{word}")
    out = b.add(FullyConnected(), z, weight, None, quantization=(Quantization((1.0,), (0,)),))
    model = b.model([y, out])
    graph = model[0]
    graph = evolve(
        graph, operations=tuple(evolve(o, location=f"{o.location}{word}") for o in graph.operations), name=f"main{word}"
    )
    ends = (SignatureTensor(f"x{word}", x), SignatureTensor(f"z{word}", z)), (SignatureTensor(f"y{word}", y),)
    signatures = (Signature(f"serve{word}", 0, *ends), Signature(f"other{word}", 0, *ends))
    return Package((Subgraphs((graph,), signatures, f"A model {word}"),), f"{name}{word}")


def impossible(word: str = "") -> Package:
    """A model that cannot be compiled: an operation has one operand too many."""
    b = Builder(f"main{word}")
    x = b.input(TensorType(DType.FLOAT32, (1, 16)), f"x{word}")
    y = b.add(Binary(BinaryKind.ADD), b.add(Unary(UnaryKind.RELU), x), b.constant(np.ones(16, np.float32), name="ones"))
    model = b.model([y])
    wrong = evolve(model[0].operations[0], inputs=(x, x), location=f"operation 0{word}")
    graph = evolve(model[0], operations=(wrong, *model[0].operations[1:]))
    return Package((Subgraphs((graph,)),), f"impossible{word}")


def nothing() -> Package:
    """A model without operations: its output is its input."""
    b = Builder("main")
    x = b.input(TensorType(DType.FLOAT32, (1, 16)), "x")
    return Package((b.model([x]),), "nothing")
