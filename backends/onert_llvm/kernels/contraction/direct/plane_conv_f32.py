"""Convolutions with few output channels in float32: adjacent outputs in the lanes, the picture in channel planes."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Val, Var, View, interleave
from onert_llvm.kernels.arithmetic.expression import evaluate, leaves
from onert_llvm.kernels.contraction.epilogue import ACC, PLAIN, Epilogue


@frozen
class PlaneConvF32(Value):
    """`out[row, x, :n]` = ending(sums over a window of stride 1 and `n` filters).

    The picture is stored at `planes` as [image, row, channel, column], a row of one channel being `pitch` elements and
    including padding columns of zeros; padding rows are neither stored nor read. `weights` are [window row, channel,
    window column, n]. `registers` registers of adjacent outputs are summed at a time; the last ones overlap the
    previous, so a row has at least as many. If the window has `across` columns, they are unrolled; 0 stands for any
    number. Work tiles are `rows` adjacent output rows, of which the last may overlap the previous; two read a row of
    the picture together, for windows of at least two rows that are not dilated vertically. The ending may not read
    matrices; its per-column parameters have `n` elements.
    """

    n: int
    registers: int
    across: int = 0
    epilogue: Epilogue = PLAIN
    rows: int = 1

    @property
    def slots(self) -> tuple[str, ...]:
        own = ("planes", "weights", "out", "in_h", "out_h", "out_w", "pitch", "channels")
        window = ("kernel_h", "kernel_w", "dilation_h", "dilation_w", "pad_h")
        return (*own, *window, *self.epilogue.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        pitch, channels, height = task.i64("pitch"), task.i64("channels"), task.i64("in_h")
        together, lines = self.registers * k.isa.f32, task.i64("out_h")
        groups = (lines + (self.rows - 1)) // self.rows
        with k.loop(end, begin) as tile:
            image, y = tile // groups, (tile % groups * self.rows).min(lines - self.rows)
            picture = task.view("planes", F32, height * channels * pitch, channels * pitch, pitch, 1)[image]
            out = task.view("out", F32, task.i64("out_w") * self.n, self.n, 1)
            with k.loop(task.i64("out_w"), step=together, nonempty=True) as at:
                x = at.min(task.i64("out_w") - together)
                for row, sums in enumerate(self._sums(k, task, picture, x, y - task.i64("pad_h"))):
                    self._store(k, task, out[image * lines + y + row, x], sums)

    def _sums(self, k: Kernel, task: Task, picture: View, x: Val, top: Val) -> list[list[list[Val]]]:
        """Registers of adjacent outputs, for each filter of each row; the first row's window begins at `top`."""
        lanes, height, step = k.isa.f32, task.i64("in_h"), task.i64("dilation_h")
        bias = [task.view("bias", F32, 1)[j].load() if self.epilogue.bias else k.f32(0.0) for j in range(self.n)]
        acc = [[[k.var(b.splat(lanes)) for _ in range(self.registers)] for b in bias] for _ in range(self.rows)]
        most = task.i64("kernel_h")
        # the window rows inside the picture
        first = (step - 1 - top).max(0) // step
        last = ((height - top).max(0) + step - 1) // step
        if self.rows == 1:
            with k.loop(last.min(most), first) as down:
                self._add_row(k, task, acc, picture[top + down * step], x, [down])
        else:
            with k.loop(last.min(1), first) as down:
                self._add_row(k, task, acc[:1], picture[top + down], x, [down])
            with k.loop(last.min(most), first.max(1)) as down:
                self._add_row(k, task, acc, picture[top + down], x, [down, down - 1])
            with k.loop(last.min(most + 1), first.max(most)) as down:
                self._add_row(k, task, acc[1:], picture[top + down], x, [down - 1])
        return [[[total.get() for total in totals] for totals in row] for row in acc]

    def _add_row(
        self, k: Kernel, task: Task, acc: list[list[list[Var]]], line: View, x: Val, downs: Sequence[Val]
    ) -> None:
        """Add the products of a row of the picture and, for each row of results, one of the window's rows."""
        channels, width = task.i64("channels"), task.i64("kernel_w")
        weights = task.view("weights", F32, channels * width * self.n, width * self.n, self.n, 1)
        with k.loop(channels, nonempty=True) as channel:
            seen, own = line[channel, x], [weights[down, channel] for down in downs]
            if self.across:
                for number in range(self.across):
                    self._add(k, acc, seen, own, k.index(number), task.i64("dilation_w"))
            else:
                with k.loop(width, nonempty=True) as across:
                    self._add(k, acc, seen, own, across, task.i64("dilation_w"))

    def _add(
        self, k: Kernel, acc: list[list[list[Var]]], seen: View, own: Sequence[View], across: Val, dilation: Val
    ) -> None:
        """Add the products of one window column."""
        here = k.view(k.view(seen.address, F32, 1)[across * dilation].address, F32, 1)
        inputs = [here[i * k.isa.f32].load(k.isa.f32) for i in range(self.registers)]
        for weights, row in zip(own, acc, strict=True):
            for j, totals in enumerate(row):
                w = k.view(weights[across].address, F32, 1)[j].load().splat(k.isa.f32)
                for value, total in zip(inputs, totals, strict=True):
                    total.set(k.fma(value, w, total.get()))

    def _store(self, k: Kernel, task: Task, out: View, sums: list[list[Val]]) -> None:
        lanes, target = k.isa.f32, k.view(out.address, F32, 1)
        given = self.epilogue.given(task, lanes)
        names = [n for n in leaves(self.epilogue.tree) if n in self.epilogue.columns]

        def value(j: int, acc: Val) -> Val:
            known = {n: task.view(n, F32, 1)[j].load().splat(lanes) for n in names} | given | {ACC.name: acc}
            return evaluate(k, self.epilogue.tree, known.__getitem__, acc)

        for number in range(self.registers):
            rows = interleave([value(j, totals[number]) for j, totals in enumerate(sums)])
            for j, row in enumerate(rows):
                target[(number * self.n + j) * lanes].store(row)
