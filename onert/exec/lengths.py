"""An execution's cache of frames for other lengths: memory that is large enough, and bound kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

from onert.backend import HOST, Program, TensorInfo
from onert.backend.memory import touched
from onert.exec.frames.frame import Frame
from onert.exec.frames.stretched import StretchedFrame
from onert.ir import Array, ExecutionError, Shape
from onert.ir.shape import is_static, static

from .arguments import Input, Reshaped
from .context import Instance
from .meter import metered
from .runner import Runner
from .setup import Setup

MOST_KEPT, KEPT_BYTES = 24, 256 << 20
"""The most frames to cache for other lengths, and their most bytes together; the most recently used are kept. The
frames share an arena."""

APART_BYTES = 64 << 20
"""The most bytes of their arenas together while some frames use an older arena than the newest."""

_MOST_SEEN = 1 << 10
"""The most input shapes for which the frame found is remembered."""

_SHAPE: Callable[[Array], tuple[int, ...]] = attrgetter("shape")


class _Kept:
    """A frame for many lengths with everything needed to set it up."""

    def __init__(
        self, base: Program, program: Program, instance: Instance, frame: StretchedFrame, arena: Array
    ) -> None:
        stretch = program.stretch
        assert stretch is not None
        self.instance = instance
        self.frame = frame
        self.used = stretch.used
        self.arena = arena
        """The frame's arena."""
        self.arena_bytes = program.arena_bytes
        self.nbytes = sum(stretch.capacities.values())
        """The memory it needs besides the arena, in bytes."""
        self.inputs, self.outputs = program.inputs, program.outputs
        self.specialize = base.specialize
        self._lengths = stretch.lengths
        opened = frozenset(stretch.lengths)
        positions = tuple(sorted({at for at, _ in opened}))
        fixed = tuple(
            tuple(None if (at, axis) in opened else d for axis, d in enumerate(info.shape))
            for at, info in enumerate(program.inputs)
        )
        self.fixed = fixed
        self.is_open = all(base.inputs[at].open_shape[axis] is None for at, axis in stretch.lengths)
        """Whether the model leaves all of these dimensions open, so that arrays determine them."""
        self._same = tuple((at, shape) for at, shape in enumerate(fixed) if None not in shape)
        graph = frame.routine.subgraph
        tensors = [frame.roomy.get(operand) for operand in graph.inputs]  # strings have no memory there
        self._named = tuple(zip([info.name for info in base.inputs], graph.inputs, tensors, strict=True))
        self._all = range(len(tensors))
        self.changed = tuple(at for at, shape in enumerate(fixed) if at in positions or shape != base.inputs[at].shape)
        """The inputs whose shapes differ from the base program's."""
        self.refused = set[tuple[int, ...]]()
        """Lengths that the frame cannot change to."""
        self._opened = {
            at: (
                len(fixed[at]),
                *_others(fixed[at]),
                [(axis, i) for i, (n, axis) in enumerate(stretch.lengths) if n == at],
            )
            for at in positions
        }
        """For each input with open dimensions: the rank, a function that picks the other dimensions of a shape, their
        expected values, and the axes of its lengths."""

    def reshaped(self, lengths: Iterable[int], reshaped: Iterable[Reshaped]) -> tuple[int, ...] | None:
        """These lengths, but those of reshaped inputs from their shapes; None if other dimensions differ too, or the
        frame cannot change to them."""
        found, refused = list(lengths), self.refused
        for at, shape in reshaped:
            opened = self._opened.get(at)
            if opened is None:
                return None
            rank, around, wanted, axes = opened
            if len(shape) != rank or around(shape) != wanted:
                return None
            for axis, place in axes:
                found[place] = shape[axis]
        changed = tuple(found)
        return None if refused and changed in refused else changed

    def become(self, lengths: tuple[int, ...]) -> bool:
        """Change the frame to these lengths; False if it cannot."""
        if self.frame.become(lengths):
            return True
        if len(self.refused) >= _MOST_SEEN:
            self.refused.clear()
        self.refused.add(lengths)
        return False

    def lengths(self, given: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
        """The lengths of inputs with these shapes; None if other dimensions differ too."""
        for at, shape in self._same:
            if given[at] != shape:
                return None
        return self.reshaped([0] * len(self._lengths), [(at, given[at]) for at in self._opened])

    def shapes(self, lengths: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The shapes of inputs with these lengths."""
        found = [list(shape) for shape in self.fixed]
        for (at, axis), length in zip(self._lengths, lengths, strict=True):
            found[at][axis] = length
        return [static(tuple(shape)) for shape in found]

    def setup(self, lengths: tuple[int, ...], changed: Iterable[int], outdated: str = "") -> Setup:
        """The frame, which has these lengths, ready to run; `changed` are the inputs whose shapes the user changed."""
        fit = _FitOfLengths(self, lengths, tuple(changed))
        run = partial(metered, fit.run, self.instance.meter) if self.frame.routine.metered else fit.run
        return Setup(fit, self.instance, self.frame, run, outdated)

    def give(self, setup: Setup, arrays: Sequence[Array]) -> None:
        """Set all inputs for the runs of a setup: copied into the frame's own memory, or in place if they are large."""
        run_inputs: list[Input] = []
        with setup.together(len(arrays)):
            for at, (array, (name, operand, tensor)) in enumerate(zip(arrays, self._named, strict=True)):
                lent = setup.lent(name, at, array)
                if lent is not None:
                    run_inputs.append(lent)
                    continue
                assert tensor is not None  # strings are always lent
                mine = tensor.view
                mine[...] = array
                if not tensor.is_own:
                    self.frame.put(operand, mine)
                run_inputs.append((name, operand, mine, -1))
        setup.given.update(self._all)
        setup.set_run_inputs(run_inputs)


class Lengths:
    """One execution's frames for many lengths, most recently used first."""

    def __init__(self, base: Program) -> None:
        self._base = base
        self._shapes = [info.shape for info in base.inputs]
        self._kept: tuple[_Kept, ...] = ()
        self._setups: dict[_Kept, Setup] = {}
        self._seen: dict[tuple[tuple[int, ...], ...], tuple[_Kept, tuple[int, ...]]] = {}
        """The frame found for given input shapes, to be tried first, and its lengths."""
        self._arena = HOST.allocate(0)

    def arena(self, program: Program) -> Array:
        """The arena for a frame of a program's stretch. It shares one arena, large enough for the largest, with the
        cached frames, because they run one at a time.

        A new arena replaces one that is too small, or too large once a frame is evicted. Frames stay in their old
        arenas while all arenas together are small, because a frame that moves must be bound again.
        """
        assert program.stretch is not None
        most, kept = program.arena_bytes, list[_Kept]()
        rooms = sum(program.stretch.capacities.values())
        for each in self._kept[: MOST_KEPT - 1]:
            most, rooms = max(most, each.arena_bytes), rooms + each.nbytes
            if most + rooms > KEPT_BYTES:
                break
            kept.append(each)
        self._kept = tuple(kept)
        self._seen = {}
        self._setups = {each: setup for each, setup in self._setups.items() if each in kept}
        largest = max(program.arena_bytes, *(each.arena_bytes for each in kept), 0)
        if not largest <= self._arena.nbytes <= max(largest, KEPT_BYTES):
            arena = touched(HOST.allocate(largest))
            apart = {id(each.arena): each.arena.nbytes for each in kept}
            if self._arena.nbytes > KEPT_BYTES or largest + sum(apart.values()) > APART_BYTES:
                for each in kept:
                    each.instance.settle(arena)
                    each.arena = arena
            self._arena = arena
        return self._arena

    def setup(self, changed: dict[int, tuple[int, ...]]) -> Setup | None:
        """Set up a run for inputs of these shapes, by position; None if no cached frame supports them."""
        shapes = [changed.get(at, shape) for at, shape in enumerate(self._shapes)]
        found = self._going(tuple(map(static, shapes))) if all(map(is_static, shapes)) else None
        if found is None:
            return None
        kept, lengths = found
        kept.used()
        return kept.setup(lengths, changed)

    def given(self, runner: Runner, arrays: Sequence[Array], reshaped: Sequence[Reshaped]) -> bool:
        """Set inputs that differ from the last ones only in lengths, of those in `reshaped`. Returns False if the full
        path is needed."""
        setup, now = runner.setup, self._kept[0] if self._kept else None
        if now is None or now.frame is not setup.frame or not now.is_open or setup.own_outputs:
            return False
        if len(arrays) != len(now.fixed):
            return False
        fit = setup.fit
        assert isinstance(fit, _FitOfLengths)
        lengths = now.reshaped(fit.lengths, reshaped)
        try:
            is_changed = lengths is not None and now.frame.become(lengths)
        except BaseException:  # the frame may have begun to change
            setup.restore_buffers([(operand, mine) for _, operand, mine, _ in setup.run_inputs])
            raise
        if lengths is not None and is_changed:
            now.used()
            runner.unready = True
            setup.go_on()
            fit.lengths = lengths
        else:
            buffers = ((operand, mine) for _, operand, mine, _ in setup.run_inputs)
            other = self._gone_on(runner, tuple(map(_SHAPE, arrays)), buffers)
            if other is None:
                return False
            now = other
        now.give(runner.setup, arrays)
        runner.ready()
        return True

    def resized(self, runner: Runner, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Change to inputs of these shapes, all of which have to be set then, unless they have these shapes already.
        Returns False if the full path is needed."""
        setup, now = runner.setup, self._kept[0] if self._kept else None
        if now is None or now.frame is not setup.frame or setup.own_outputs:
            return False
        assert isinstance(setup.fit, _FitOfLengths)
        same = now.lengths(shapes) == setup.fit.lengths
        return same or self._gone_on(runner, tuple(shapes), setup.buffers()) is not None

    def _gone_on(
        self, runner: Runner, shapes: tuple[tuple[int, ...], ...], buffers: Iterable[tuple[int, Array | None]]
    ) -> _Kept | None:
        """Change to inputs of these shapes, none of them set, with the current frame or another one of the same other
        dimensions. None if there is none; `buffers` are those to restore after an error."""
        setup, now = runner.setup, self._kept[0]
        try:
            found = self._going(shapes, now.fixed)
            if found is None:
                return None
            kept, lengths = found
            kept.used()
            if kept is not now:
                setup = self._setup_of(kept, lengths)
        except BaseException:
            setup.restore_buffers(buffers)  # the frame may have begun to change
            raise
        runner.unready = True
        setup.go_on()
        assert isinstance(setup.fit, _FitOfLengths)
        setup.fit.lengths = lengths
        runner.setup = setup
        return kept

    def _setup_of(self, kept: _Kept, lengths: tuple[int, ...]) -> Setup:
        """A setup of the frame for inputs set by `given`: the previous one, unless a user has changed it."""
        found = self._setups.get(kept)
        if found is None or found.own_outputs:
            found = self._setups[kept] = kept.setup(lengths, kept.changed)
        return found

    def _going(
        self, shapes: tuple[tuple[int, ...], ...], fixed: tuple[Shape, ...] | None = None
    ) -> tuple[_Kept, tuple[int, ...]] | None:
        """The first cached frame that could be changed to inputs of these shapes, and their lengths. With `fixed`, only
        frames with the same other dimensions are tried. None if there is none."""
        found = self._seen.get(shapes)
        if found is None or not (fixed is None or found[0].fixed == fixed) or not found[0].frame.become(found[1]):
            for kept in self._kept:
                lengths = kept.lengths(shapes) if fixed is None or kept.fixed == fixed else None
                if lengths is not None and kept.become(lengths):
                    break
            else:
                return None
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            found = self._seen[shapes] = kept, lengths
        if found[0] is not self._kept[0]:
            others = list(self._kept)
            others.remove(found[0])
            self._kept = (found[0], *others)
        return found

    def kept(self, program: Program, make: Callable[[], Setup], given: Sequence[Shape]) -> Setup | None:
        """Cache the frame of a new setup for all lengths of the program's stretch; it begins with those of the given
        input shapes. Returns None if there is not enough memory for the longest lengths, or if native code cannot
        compute the stretch's numbers for these, because Python's integers may be larger.
        """
        try:
            made = make()
        except ExecutionError:
            return None
        frame = made.frame
        assert isinstance(frame, StretchedFrame)
        fresh = _Kept(self._base, program, made.instance, frame, self._arena)
        lengths = fresh.lengths([static(shape) for shape in given])
        if lengths is None or not frame.become(lengths):
            return None
        self._kept = (fresh, *self._kept)
        return fresh.setup(lengths, made.fit.shapes, made.outdated)


_Infos = tuple[TensorInfo, ...]
_NO_INFOS: tuple[tuple[int, ...] | None, _Infos] = None, ()


class _FitOfLengths:
    """A `Fit` that changes from one length to another. It computes infos only on demand, as most runs only go on to the
    next length."""

    __slots__ = ("_changed", "_frame", "_inputs", "_kept", "_outputs", "lengths")

    def __init__(self, kept: _Kept, lengths: tuple[int, ...], changed: tuple[int, ...]) -> None:
        self.lengths = lengths
        self._kept = kept
        self._frame = kept.frame
        self._changed = changed
        self._inputs = self._outputs = _NO_INFOS

    def run(self, frame: Frame) -> None:
        """Run for these lengths, even if a change to other lengths was interrupted."""
        if self._frame.lengths is not self.lengths:
            self.settle()
        frame.execute(frame)

    def settle(self) -> None:
        frame = self._frame
        if frame.lengths is not self.lengths and not frame.become(self.lengths, again=True):
            raise ExecutionError("the program cannot run for these lengths")

    @property
    def inputs(self) -> _Infos:
        of, found = self._inputs
        if of is not self.lengths:
            of, kept = self.lengths, self._kept
            found = tuple(map(_with, kept.inputs, kept.shapes(of)))
            self._inputs = of, found
        return found

    @property
    def outputs(self) -> _Infos:
        of, found = self._outputs
        if of is not self.lengths:
            of, kept = self.lengths, self._kept
            self.settle()
            shapes = map(kept.frame.shape, kept.frame.routine.subgraph.outputs)
            found = tuple(map(_with, kept.outputs, shapes))
            self._outputs = of, found
        return found

    @property
    def shapes(self) -> dict[int, tuple[int, ...]]:
        shapes = self._kept.shapes(self.lengths)
        return {at: shapes[at] for at in self._changed}

    def compiled(self) -> Program:
        return self._kept.specialize(self.shapes)


def _others(fixed: Shape) -> tuple[Callable[[tuple[int, ...]], Any], Any]:
    """A function that picks the fixed dimensions of a shape, and their values."""
    axes = [axis for axis, d in enumerate(fixed) if d is not None]
    if not axes:
        return len, len(fixed)
    take = itemgetter(*axes)
    return take, take(fixed)


def _with(info: TensorInfo, shape: Shape) -> TensorInfo:
    """The info with another shape."""
    if info.shape == shape:
        return info
    return TensorInfo(info.name, info.dtype, shape, info.quantization, info.signature_shape, info.other_names)
