"""What an execution keeps for lengths to come: memory that is large enough, and kernels that are bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import cast, overload

import numpy as np

from onert.backend import Program, TensorInfo
from onert.exec.frames.stretched import StretchedFrame
from onert.ir import Array, Shape

from .arguments import Usual, given_again
from .context import Instance
from .runner import Runner, Setup

MOST_KEPT, KEPT_BYTES = 8, 256 << 20
"""How many frames are kept for other lengths, those used last: fewer where they take more bytes than this together."""

Specialize = Callable[[Mapping[int, tuple[int, ...]]], Program]


class _Kept:
    """A frame for many lengths with what is needed to set it up."""

    def __init__(self, base: Program, program: Program, instance: Instance, frame: StretchedFrame) -> None:
        stretch = program.stretch
        assert stretch is not None
        self.instance = instance
        self.frame = frame
        self.used = stretch.used
        self.nbytes = program.arena_bytes + sum(stretch.capacities.values())
        self._inputs, self._outputs = program.inputs, program.outputs
        self._lengths = stretch.lengths
        self.positions = tuple(dict.fromkeys(at for at, _ in stretch.lengths))
        """The inputs that have them."""
        opened = frozenset(stretch.lengths)
        fixed = tuple(
            tuple(None if (at, axis) in opened else d for axis, d in enumerate(info.shape))
            for at, info in enumerate(program.inputs)
        )
        self.fixed = fixed
        self.is_open = all(base.inputs[at].open_shape[axis] is None for at, axis in stretch.lengths)
        """Whether the model leaves all of these dimensions open, so that arrays bring them."""
        self._closed = tuple((at, shape) for at, shape in enumerate(fixed) if None not in shape)
        self._opened = tuple((at, shape) for at, shape in enumerate(fixed) if None in shape)

    def lengths(self, shapes: list[Shape]) -> tuple[int, ...] | None:
        """The lengths that inputs of these shapes have; None where other dimensions differ too."""
        for at, fixed in self._closed:
            if shapes[at] != fixed:
                return None
        for at, fixed in self._opened:
            shape = shapes[at]
            if len(fixed) != len(shape) or None in shape:
                return None
            for d, given in zip(fixed, shape, strict=True):
                if d is not None and d != given:
                    return None
        return tuple([cast(int, shapes[at][axis]) for at, axis in self._lengths])

    def setup(
        self,
        lengths: tuple[int, ...],
        compiled: Callable[[], Program],
        shapes: Mapping[int, tuple[int, ...]],
        outdated: str = "",
    ) -> Setup:
        """The frame, which has these lengths, ready for runs."""
        frame = self.frame
        tensors, graph = frame.tensors, frame.routine.subgraph
        inputs = _Infos(self._inputs, [tensors[at].type.shape for at in graph.inputs])
        outputs = _Infos(self._outputs, [tensors[at].type.shape for at in graph.outputs])
        run = partial(frame.execute_for, lengths)
        return Setup(inputs, outputs, compiled, self.instance, frame, run, shapes, outdated)

    def buffers(self, before: Sequence[Usual], same: bool) -> tuple[Usual, ...]:
        """Where inputs are copied to, by what was before: with the `same` frame they stay if their shape does."""
        tensors, found = self.frame.tensors, []
        for (name, _, mine), operand in zip(before, self.frame.routine.subgraph.inputs, strict=True):
            stays = same and tensors[operand].type.shape == mine.shape
            found.append((name, operand, mine if stays else self.frame.room(operand)))
        return tuple(found)


class Lengths:
    """The frames of one execution that are for many lengths, those used last first."""

    def __init__(self, base: Program) -> None:
        self._base = base
        self._shapes = [info.shape for info in base.inputs]
        self._kept: tuple[_Kept, ...] = ()

    def setup(self, changed: dict[int, tuple[int, ...]]) -> Setup | None:
        """What it takes to run for inputs that have these shapes, by position; None where nothing is there for them."""
        shapes = [changed.get(at, shape) for at, shape in enumerate(self._shapes)]
        for kept in self._kept:
            lengths = kept.lengths(shapes)
            if lengths is not None and kept.frame.become(lengths):
                if kept is not self._kept[0]:
                    self._kept = (kept, *(other for other in self._kept if other is not kept))
                kept.used()
                return kept.setup(lengths, partial(self._base.specialize, changed), changed)
        return None

    def given(self, runner: Runner, inputs: object) -> bool:
        """Give a runner inputs as were given last but for their lengths; False where there is more to be looked at."""
        found = self._following(runner.setup, inputs)
        if found is None:
            return False
        made, usual, arrays = found
        runner.unready = True
        runner.setup = made
        for (_, operand, mine), array in zip(usual, arrays, strict=True):
            np.copyto(mine, array)
            made.frame.put(operand, mine)
        made.given.update(range(len(usual)))
        made.usual = usual
        return True

    def _following(self, setup: Setup, inputs: object) -> tuple[Setup, tuple[Usual, ...], Sequence[Array]] | None:
        """What it takes to run for these inputs, where they are to be copied, and they themselves, in order."""
        usual, now = setup.usual, self._kept[0] if self._kept else None
        if now is None or now.frame is not setup.frame or not now.is_open or setup.own_outputs:
            return None
        count = len(setup.inputs)
        arrays = given_again(usual, inputs, count, same_shapes=False) if len(usual) == count else None
        if arrays is None:
            return None
        shapes = [array.shape for array in arrays]
        try:
            for kept in self._kept:
                lengths = kept.lengths(shapes) if kept.fixed == now.fixed else None
                if lengths is not None and kept.frame.become(lengths):
                    break
            else:
                return None
            if kept is not now:
                self._kept = (kept, *(other for other in self._kept if other is not kept))
            kept.used()
            changed = {**setup.shapes, **{at: shapes[at] for at in kept.positions}}
            made = kept.setup(lengths, partial(self._base.specialize, changed), changed)
            buffers = kept.buffers(usual, kept is now)
        except BaseException:
            setup.lend([(operand, mine) for _, operand, mine in usual])  # the frame may have begun to be for others
            raise
        made.own_inputs = {at: mine for at, (_, _, mine) in enumerate(buffers)}
        return made, buffers, arrays

    def kept(self, program: Program, made: Setup) -> Setup | None:
        """What was made for a program, whose frame is kept from now on for all lengths of the program's stretch; None
        where native code cannot follow its numbers for the program's own lengths, as Python's integers may be larger.
        """
        frame = made.frame
        assert isinstance(frame, StretchedFrame)
        fresh = _Kept(self._base, program, made.instance, frame)
        lengths = fresh.lengths([info.shape for info in program.inputs])
        if lengths is None or not frame.become(lengths):
            return None
        found = (fresh, *self._kept)[:MOST_KEPT]
        while len(found) > 1 and sum(kept.nbytes for kept in found) > KEPT_BYTES:
            found = found[:-1]
        self._kept = found
        return fresh.setup(lengths, made.compiled, made.shapes, made.outdated)


class _Infos(Sequence[TensorInfo]):
    """Inputs or outputs in other shapes, made when they are looked at: most runs only go on to the next length."""

    __slots__ = ("_infos", "_made", "_shapes")

    def __init__(self, infos: Sequence[TensorInfo], shapes: Sequence[Shape]) -> None:
        self._infos = infos
        self._shapes = shapes
        self._made: tuple[TensorInfo, ...] | None = None

    def _all(self) -> tuple[TensorInfo, ...]:
        if self._made is None:
            self._made = tuple([_with(info, shape) for info, shape in zip(self._infos, self._shapes, strict=True)])
        return self._made

    def __len__(self) -> int:
        return len(self._infos)

    def __iter__(self) -> Iterator[TensorInfo]:
        return iter(self._all())

    @overload
    def __getitem__(self, at: int) -> TensorInfo: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[TensorInfo]: ...
    def __getitem__(self, at: int | slice) -> TensorInfo | Sequence[TensorInfo]:
        return self._all()[at]


def _with(info: TensorInfo, shape: Shape) -> TensorInfo:
    """An input or output in another shape."""
    if info.shape == shape:
        return info
    return TensorInfo(info.name, info.dtype, shape, info.quantization, info.signature_shape, info.other_names)
