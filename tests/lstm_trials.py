"""Random LSTM layers: each kind with all options, with a seed for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from attrs import evolve
from recurrent_trials import KINDS, Draw, Trial, floats, per_tensor

from onert.ir import DType, TensorType

FORMS = tuple(
    f for f in product((False, True), (False, True), (False, True), (False, True)) if not (f[2] and f[3] and f[1])
)
"""Coupled, peephole, projection, normalisation."""


def _lstm_layer(
    draw: Draw, inputs: int, cells: int, outputs: int, coupled: bool, peephole: bool, projection: bool
) -> None:
    """Draw the 17 weight operands."""
    for width, spread in ((inputs, 0.5), (outputs, 0.3)):
        for gate in range(4):
            draw.none() if coupled and gate == 0 else draw.weights((cells, width), spread)
    for gate in range(3):
        draw.none() if not peephole or (coupled and gate == 0) else draw.weights((cells,), 0.3)
    for gate in range(4):
        draw.none() if coupled and gate == 0 else draw.real((cells,), 0.3)
    draw.weights((outputs, cells)) if projection else draw.none()
    draw.real((outputs,), 0.2) if projection and draw.rng.random() < 0.5 else draw.none()


def _operator(steps: str, clip: bool) -> tuple[str, str, dict[str, Any]]:
    """The operator for one step or a sequence of them, its options table, and the options."""
    fields: dict[str, Any] = {"fusedActivationFunction": 4}
    if clip:
        fields |= {"cellClip": 0.4, "projClip": 0.3}
    if steps == "one":
        return "LSTM", "LSTMOptions", fields
    fields["timeMajor"] = steps == "time-major"
    return "UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions", fields


def lstm() -> Iterator[Trial]:
    for kind, form, steps, clip in product(KINDS, FORMS, ("one", "batch-major", "time-major"), (False, True)):
        coupled, peephole, projection, normal = form
        words = [w for w, f in zip(("coupled", "peephole", "projection", "normalised"), form, strict=True) if f]
        draw = Draw(" ".join((kind, steps, *words, "clipped" if clip else "")).strip(), kind)
        batch, time, inputs, cells = (int(n) for n in draw.rng.integers(1, 8, 4))
        cells += 1
        outputs = int(draw.rng.integers(1, 8)) if projection else cells
        ends = {"one": (batch,), "batch-major": (batch, time), "time-major": (time, batch)}[steps]
        draw.input((*ends, inputs))
        _lstm_layer(draw, inputs, cells, outputs, coupled, peephole, projection)
        draw.state((batch, outputs))
        draw.state((batch, cells))
        if normal:
            for gate in range(4):
                draw.none() if coupled and gate == 0 else draw.real((cells,), 0.5)
        code, table, fields = _operator(steps, clip)
        trial = draw.trial(code, table, fields, [floats(*ends, outputs)])
        # Normalisation amplifies differences between the cells, however small.
        yield evolve(trial, tolerance=1e-4) if normal else trial


def long_hybrid() -> Iterator[Trial]:
    """Sequences so long that a single different rounding would show, of sizes for which LiteRT uses full vectors."""
    for kind, form in product(KINDS[1:], FORMS):
        coupled, peephole, projection, normal = form
        words = [w for w, f in zip(("coupled", "peephole", "projection", "normalised"), form, strict=True) if f]
        draw = Draw(" ".join((kind, "long", *words)), kind)
        inputs, cells, outputs = 24, 48, 32 if projection else 48
        draw.input((1, 40, inputs))
        _lstm_layer(draw, inputs, cells, outputs, coupled, peephole, projection)
        draw.state((1, outputs))
        draw.state((1, cells))
        if normal:
            for gate in range(4):
                draw.none() if coupled and gate == 0 else draw.real((cells,), 0.5)
        table = "UnidirectionalSequenceLSTMOptions"
        results = [floats(1, 40, outputs)]
        trial = draw.trial("UNIDIRECTIONAL_SEQUENCE_LSTM", table, {"fusedActivationFunction": 4}, results, runs=2)
        yield evolve(trial, tolerance=0.0)


def long_bidirectional() -> Iterator[Trial]:
    """The same in both directions."""
    for kind, projection in product(KINDS[1:], (False, True)):
        draw = Draw(f"{kind} long projection {projection}", kind)
        inputs, cells, outputs = 24, 48, 32 if projection else 48
        draw.input((1, 10, inputs))
        for _ in range(2):
            _lstm_layer(draw, inputs, cells, outputs, False, True, projection)
        for _ in range(2):
            draw.state((1, outputs))
            draw.state((1, cells))
        draw.none(9)
        table = "BidirectionalSequenceLSTMOptions"
        fields = {"fusedActivationFunction": 4, "timeMajor": False}
        results = [floats(1, 10, outputs), floats(1, 10, outputs)]
        trial = draw.trial("BIDIRECTIONAL_SEQUENCE_LSTM", table, fields, results, runs=2)
        yield evolve(trial, tolerance=0.0)


def diagonal_lstm() -> Iterator[Trial]:
    for kind, coupled in product(("float", "hybrid"), (False, True)):
        draw = Draw(f"{kind} diagonal coupled {coupled}", kind)
        batch, time, inputs, cells = 2, 3, 5, 4
        draw.input((batch, time, inputs))
        for gate in range(4):
            draw.none() if coupled and gate == 0 else draw.weights((cells, inputs))
        for gate in range(4):
            draw.none() if coupled and gate == 0 else draw.real((cells,), 0.3)
        draw.none(3)
        for gate in range(4):
            draw.none() if coupled and gate == 0 else draw.real((cells,), 0.3)
        draw.none(2)
        draw.state((batch, cells))
        draw.state((batch, cells))
        fields = {"fusedActivationFunction": 4, "diagonalRecurrentTensors": True}
        table = "UnidirectionalSequenceLSTMOptions"
        yield draw.trial("UNIDIRECTIONAL_SEQUENCE_LSTM", table, fields, [floats(batch, time, cells)])


def bidirectional_lstm() -> Iterator[Trial]:
    forms = ((False, False, False), (True, True, False), (False, True, True), (True, False, True))
    for kind, form, major, merge, aux in product(
        KINDS, forms, (False, True), (False, True), ("none", "linked", "stacked")
    ):
        coupled, _, projection = form
        words = [w for w, f in zip(("coupled", "peephole", "projection"), form, strict=True) if f]
        name = " ".join((kind, *words, f"time-major {major} merged {merge} aux {aux}"))
        draw = Draw(name, kind)
        batch, time, inputs, cells = (int(n) for n in draw.rng.integers(1, 7, 4))
        cells += 1
        if merge and not major:
            batch = 1  # otherwise LiteRT's kernel steps through the states by the width of the merged result
        outputs = int(draw.rng.integers(1, 6)) if projection else cells
        ends = (time, batch) if major else (batch, time)
        draw.input((*ends, inputs))
        for _ in range(2):
            _lstm_layer(draw, inputs, cells, outputs, *form)
        for _ in range(2):
            draw.state((batch, outputs))
            draw.state((batch, cells))
        if aux == "none":
            draw.none(9)
        else:
            width = inputs if aux == "stacked" else int(draw.rng.integers(1, 6))
            draw.input((*ends, width))
            for gate in range(8):
                absent = aux == "stacked" or (coupled and gate % 4 == 0)
                draw.none() if absent else draw.weights((cells, width), 0.3)
        fields = {"fusedActivationFunction": 4, "timeMajor": major, "mergeOutputs": merge}
        sizes = (2 * outputs,) if merge else (outputs, outputs)
        results = [floats(*ends, size) for size in sizes]
        yield draw.trial("BIDIRECTIONAL_SEQUENCE_LSTM", "BidirectionalSequenceLSTMOptions", fields, results)


def integer_lstm() -> Iterator[Trial]:
    """int8 with int16 gates."""
    for form, steps, clip in product(FORMS, ("one", "batch-major", "time-major"), (False, True)):
        coupled, peephole, projection, normal = form
        words = [w for w, f in zip(("coupled", "peephole", "projection", "normalised"), form, strict=True) if f]
        draw = Draw(" ".join(("integer", steps, *words, "clipped" if clip else "")).strip(), "integer")
        batch, time, inputs, cells = (int(n) for n in draw.rng.integers(1, 9, 4))
        cells += 1
        # LiteRT's kernel misplaces peepholes if there are fewer outputs than cells.
        outputs = cells if peephole or not projection else int(draw.rng.integers(1, 9))
        ends = {"one": (batch,), "batch-major": (batch, time), "time-major": (time, batch)}[steps]
        h = per_tensor(0.008, 5)
        draw.input((*ends, inputs), per_tensor(0.03, -11))
        _integer_layer(draw, inputs, cells, outputs, form)
        draw.state((batch, outputs), DType.INT8, h)
        draw.state((batch, cells), DType.INT16, per_tensor(2.0 ** -int(draw.rng.integers(9, 16))))
        if normal:
            for gate in range(4):
                draw.none() if coupled and gate == 0 else draw.stored(DType.INT16, (cells,), 1e-4)
        code, table, fields = _operator(steps, clip)
        sums = [TensorType(DType.INT16, (1,), per_tensor(0.0005)) for _ in range(4)]
        hidden = TensorType(DType.INT8, (1,), per_tensor(0.007, 3) if projection else h)
        result = TensorType(DType.INT8, (*ends, outputs), h)
        yield draw.trial(code, table, fields, [result], intermediates=[*sums, hidden], runs=4)


def _integer_layer(draw: Draw, inputs: int, cells: int, outputs: int, form: tuple[bool, bool, bool, bool]) -> None:
    coupled, peephole, projection, _ = form
    for width in (inputs, outputs):
        for gate in range(4):
            draw.none() if coupled and gate == 0 else draw.stored(DType.INT8, (cells, width), 0.012, reach=127)
    for gate in range(3):
        absent = not peephole or (coupled and gate == 0)
        draw.none() if absent else draw.stored(DType.INT16, (cells,), 3e-5)
    for gate in range(4):
        absent = coupled and gate == 0
        draw.none() if absent else draw.stored(DType.INT32, (cells,), 4e-4, reach=2000)
    draw.stored(DType.INT8, (outputs, cells), 0.01, reach=127) if projection else draw.none()
    draw.stored(DType.INT32, (outputs,), 1e-4, reach=500) if projection else draw.none()


def narrow_lstm() -> Iterator[Trial]:
    """int8 with int8 products: coupled, normalised and projected.

    The output gate's recurrent product gets a negligible scale, because LiteRT's kernel reads another one for it.
    """
    for seed, clip in product(range(6), (False, True)):
        draw = Draw(f"narrow {seed} clipped {clip}", "integer")
        batch, inputs, cells, outputs = (int(n) for n in draw.rng.integers(2, 9, 4))
        h = per_tensor(0.008, 5)
        draw.input((batch, inputs), per_tensor(0.03, -11))
        _integer_layer(draw, inputs, cells, outputs, (True, False, True, True))
        draw.state((batch, outputs), DType.INT8, h)
        draw.state((batch, cells), DType.INT16, per_tensor(2.0**-15))
        draw.none()
        for _ in range(3):
            draw.stored(DType.INT16, (cells,), 3e-5)
        fields: dict[str, Any] = {"fusedActivationFunction": 4}
        if clip:
            fields |= {"cellClip": 0.3, "projClip": 0.3}
        zeros = [int(z) for z in draw.rng.integers(-20, 20, 12)]
        zeros[11] = zeros[7]
        scales = [0.0005 if at % 3 == 0 else 0.02 for at in range(12)]
        scales[9], scales[10], scales[11] = 1e4, 1e4, 1e-9
        types = [TensorType(DType.INT8, (1,), per_tensor(s, z)) for s, z in zip(scales, zeros, strict=True)]
        result = TensorType(DType.INT8, (batch, outputs), h)
        yield draw.trial("LSTM", "LSTMOptions", fields, [result], intermediates=types, runs=4)


def basic_lstm() -> Iterator[Trial]:
    for kind, seed in product(("float", "integer"), range(6)):
        draw = Draw(f"basic {kind} {seed}", kind)
        batch, inputs, cells = (int(n) for n in draw.rng.integers(1, 9, 3))
        if kind == "float":
            draw.input((batch, inputs))
            draw.state((batch, cells))
            draw.real((4 * cells, inputs + cells), 0.5)
            draw.real((4 * cells,), 0.5)
            draw.state((batch, cells))
            results = [floats(batch, n) for n in (cells, cells, inputs + cells, 4 * cells)]
        else:
            unit, state = per_tensor(1 / 128, 128), per_tensor(2.0**-11)
            draw.input((batch, inputs), unit)
            draw.types[0] = TensorType(DType.UINT8, (batch, inputs), unit)
            draw.state((batch, cells), DType.UINT8, unit)
            draw.stored(DType.UINT8, (4 * cells, inputs + cells), 0.02, 117)
            draw.stored(DType.INT32, (4 * cells,), 0.02 / 128, reach=8000)
            draw.state((batch, cells), DType.INT16, state)
            results = [
                TensorType(DType.UINT8, (batch, cells), unit),
                TensorType(DType.INT16, (batch, cells), state),
                TensorType(DType.UINT8, (batch, inputs + cells), unit),
                TensorType(DType.INT16, (batch, 4 * cells), per_tensor(2.0**-12)),
            ]
        trial = draw.trial("LSTM", "LSTMOptions", {"fusedActivationFunction": 4, "kernelType": 1}, results)
        yield evolve(trial, name=draw.name)
