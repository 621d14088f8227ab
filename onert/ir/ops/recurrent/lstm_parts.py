"""The operands of one LSTM layer by role, and the rules that all its forms share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from attrs import frozen

from onert.ir.dtype import DType
from onert.ir.op import require
from onert.ir.shape import Dim
from onert.ir.types import TensorType

from .recurrent import require_dtype, require_kind, require_per_tensor, require_shape, require_state, require_weights

T = TypeVar("T")

INPUT, FORGET, CELL, OUTPUT = range(4)
"""The gates, in the order of every tuple below."""


LAYER = "wi? wf wc wo ri? rf rc ro pi? pf? po? bi? bf bc bo projection? projection_bias?"
"""The operands of one layer in TFLite's order, as `parts` receives them."""


@frozen(eq=False)
class Parts(Generic[T]):
    """The operands of a layer (their types, or their elements), one per gate; None for absent ones.

    `weights` [cells, inputs], `recurrent` [cells, outputs] or [cells] for a diagonal matrix, `peephole` [cells] (none
    for the cell gate), `bias` [cells], `norm` [cells], `aux` [cells, auxiliary inputs], `projection` [outputs, cells]
    and its bias [outputs].
    """

    weights: tuple[T | None, ...]
    recurrent: tuple[T | None, ...]
    peephole: tuple[T | None, ...]
    bias: tuple[T | None, ...]
    projection: T | None
    projection_bias: T | None
    norm: tuple[T | None, ...] = (None,) * 4
    aux: tuple[T | None, ...] = (None,) * 4

    @property
    def coupled(self) -> bool:
        """Whether there is no input gate: its value is one minus the forget gate."""
        return self.weights[INPUT] is None


def parts(
    operands: Sequence[T | None], norm: Sequence[T | None] = (None,) * 4, aux: Sequence[T | None] = (None,) * 4
) -> Parts[T]:
    """The parts in 17 operands in TFLite's order: weights, recurrent ones, peepholes, biases, projection, its bias."""
    peephole = (operands[8], operands[9], None, operands[10])
    return Parts(
        tuple(operands[0:4]),
        tuple(operands[4:8]),
        peephole,
        tuple(operands[11:15]),
        operands[15],
        operands[16],
        tuple(norm),
        tuple(aux),
    )


def needed(operand: T | None) -> T:
    """An operand that is known to be present."""
    assert operand is not None
    return operand


def check(
    found: Parts[TensorType], x: TensorType, h: TensorType, c: TensorType, batch: Dim, aux_size: Dim = None
) -> Dim:
    """The number of outputs of a layer. Raises RuleError if operands have invalid shapes or are wrongly absent."""
    weight, recurrent = needed(found.weights[OUTPUT]), needed(found.recurrent[OUTPUT])
    require(weight.rank == 2, f"input weights are {weight}, expected 2 dimensions")
    require(recurrent.rank in (1, 2), f"recurrent weights are {recurrent}, expected 1 or 2 dimensions")
    cells, outputs = weight.shape[0], recurrent.shape[-1]
    _require_presence(found)
    for operand in found.weights:
        require_shape(operand, (cells, x.shape[-1]), "input weights")
    for operand in found.recurrent:
        diagonal = operand is not None and operand.rank == 1
        require_shape(operand, (outputs,) if diagonal else (cells, outputs), "recurrent weights")
        require(
            not diagonal or cells is None or outputs is None or cells == outputs,
            f"diagonal recurrent weights have {outputs} elements, expected one for each of the {cells} cells",
        )
    for operand in found.aux:
        require_shape(operand, (cells, aux_size), "auxiliary input weights")
    for name, operands in (("peephole weights", found.peephole), ("bias", found.bias), ("normalisation", found.norm)):
        for operand in operands:
            require_shape(operand, (cells,), name)
    require_shape(found.projection, (outputs, cells), "projection")
    require_shape(found.projection_bias, (outputs,), "projection bias")
    require_state(h, (batch, outputs), "output state")
    require_state(c, (batch, cells), "cell state")
    square = cells is None or outputs is None or cells == outputs
    require(found.projection is not None or square, f"{cells} cells have {outputs} outputs without a projection")
    return outputs


def _require_presence(found: Parts[TensorType]) -> None:
    coupled = found.coupled
    require((found.recurrent[INPUT] is None) is coupled, "only one of the input gate's two weights is present")
    require((found.bias[INPUT] is None) is coupled, "only one of the input gate's weights and bias is present")
    named = (
        ("peephole", found.peephole, (FORGET, OUTPUT)),
        ("normalisation", found.norm, (FORGET, CELL, OUTPUT)),
        ("auxiliary", found.aux, (FORGET, CELL, OUTPUT)),
    )
    for name, operands, gates in named:
        some = not coupled and operands[INPUT] is not None
        require(not coupled or operands[INPUT] is None, f"there are {name} weights for an input gate that is absent")
        own = [operands[gate] is not None for gate in gates]
        require(all(own) or not (any(own) or some), f"only some of the gates have {name} weights")
        require(coupled or some is own[0], f"only some of the gates have {name} weights")
    require(found.projection is not None or found.projection_bias is None, "there is a projection bias without weights")


def require_float_types(found: Parts[TensorType], x: TensorType, h: TensorType, c: TensorType) -> None:
    """Raises RuleError unless this is a float layer, with float or integer weights."""
    require_dtype(x, DType.FLOAT32, "x")
    kind = needed(found.weights[OUTPUT])
    require_kind(kind)
    for operand in (*found.weights, *found.aux):
        require_weights(operand, kind, "input weights")
    for operand in found.recurrent:
        if operand is not None and operand.rank == 1:
            require_dtype(operand, DType.FLOAT32, "diagonal recurrent weights")
        else:
            require_weights(operand, kind, "recurrent weights")
    for operand in found.peephole:
        require_weights(operand, kind, "peephole weights")
    require_weights(found.projection, kind, "projection")
    for operand in (*found.bias, found.projection_bias, *found.norm):
        require_dtype(operand, DType.FLOAT32, "bias or normalisation")
    require_dtype(h, DType.FLOAT32, "output state")
    require_dtype(c, DType.FLOAT32, "cell state")


def require_integer_types(found: Parts[TensorType], x: TensorType, h: TensorType, c: TensorType) -> None:
    """Raises RuleError unless the layer has int8 inputs and weights, and an int16 cell state."""
    named: list[tuple[str, TensorType | None]] = [("x", x), ("output state", h), ("projection", found.projection)]
    named += [("input weights", o) for o in found.weights]
    named += [("recurrent weights", o) for o in found.recurrent]
    for name, operand in named:
        if operand is None:
            continue
        require_dtype(operand, DType.INT8, name)
        require_per_tensor(operand, name)
        require(operand.rank >= 2 or "weights" not in name, f"{name} are {operand}, expected 2 dimensions")
    for operand in (*found.bias, found.projection_bias):
        require_dtype(operand, DType.INT32, "bias")
    elementwise = [*(("peephole weights", o) for o in found.peephole), *(("normalisation", o) for o in found.norm)]
    for name, operand in (*elementwise, ("cell state", c)):
        require_dtype(operand, DType.INT16, name)
        if operand is not None:
            require_per_tensor(operand, name)
    require(c.zero_point == 0, f"cell state has zero point {c.zero_point}, expected 0")
