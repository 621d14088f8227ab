"""Convolution of small groups of channels in float32: adjacent groups share registers."""

from __future__ import annotations

from math import gcd

from attrs import field, frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Val, View

from .depthwise_f32 import StripsF32
from .depthwise_strip import Pixels, Row


@frozen
class Groups(Value):
    """Groups of `inputs` and `outputs` channels; a register holds the results of whole groups, or a part of one."""

    inputs: int
    outputs: int

    def together(self, lanes: int) -> int:
        """How many groups share a register; 1 if it holds only a part of one."""
        return max(1, min(lanes // self.outputs, lanes // self.inputs))

    def results(self, lanes: int) -> int:
        """How many results a register holds."""
        return min(lanes, self.together(lanes) * self.outputs)

    def fits(self, lanes: int) -> bool:
        """Whether registers hold whole groups, or groups fill whole registers."""
        return max(self.inputs, self.outputs) <= lanes or self.outputs % lanes == 0

    def whole(self, lanes: int) -> bool:
        """Whether no lanes are unused."""
        return self.results(lanes) == lanes and (self.together(lanes) * self.inputs in (1, 2, 4, 8, 16))


@frozen
class GroupedF32(StripsF32):
    """A convolution of groups; weights are `[taps, inputs of a group, outputs]`.

    Each register of outputs reads its groups' inputs one by one, each shuffled to the lanes of its group.
    """

    groups: Groups = field(kw_only=True)

    def _sums(self, k: Kernel, task: Task, pixels: Pixels, c: Val, mask: Val | None) -> list[Val]:
        lanes, strip, groups = k.isa.f32, self.strip, self.groups
        taps, channels = strip.window[1], task.i64("channels")
        acc = [k.var(self.epilogue.start(k, task, c, lanes, mask)) for _ in range(strip.across)]
        filters = task.view("w", F32, 1)[c].address
        first = c // groups.outputs * groups.inputs

        def add(tap: Val, row: Row) -> None:
            places = {column: row[column] for column in strip.columns}

            def products(j: Val, seen: dict[int, Val]) -> None:
                for tx in range(taps):
                    at = ((tap * taps + tx) * groups.inputs + j) * channels
                    w = k.view(filters, F32, 1)[at].load(lanes, mask)
                    for x, total in enumerate(acc):
                        total.set(k.fma(seen[x * strip.stride + tx * strip.dilation], w, total.get()))

            if groups.outputs >= lanes:
                with k.loop(groups.inputs, nonempty=True) as j:
                    products(j, {n: k.view(p.address, F32, 1)[j].load().splat(lanes) for n, p in places.items()})
                return
            loaded = {n: self._inputs(k, task, p, first, mask) for n, p in places.items()}
            for number in range(groups.inputs):
                order = [i // groups.outputs * groups.inputs + number for i in range(groups.results(lanes))]
                order += order[:1] * (lanes - len(order))
                products(k.index(number), {n: value.shuffle(order) for n, value in loaded.items()})

        pixels.each_row(first, add)
        return [total.get() for total in acc]

    def _inputs(self, k: Kernel, task: Task, place: View, first: Val, mask: Val | None) -> Val:
        """The inputs of a register's groups."""
        lanes, groups = k.isa.f32, self.groups
        count = groups.together(lanes) * groups.inputs
        if mask is None and gcd(count, lanes) == count:
            return place.load(count)
        return place.load(lanes, k.mask(lanes, (task.i64("pixel") - first).min(count)))
