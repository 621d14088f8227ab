"""Products of floats with weights that are codes of few bits, with a scale for each run of terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from attrs import evolve, frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I16, I32, Kernel, Val, Var, View, intrinsic, vec
from onert_llvm.kernels.contraction.contraction import multiply, store
from onert_llvm.kernels.contraction.epilogue import Epilogue
from onert_llvm.kernels.contraction.float_terms import FloatTerms
from onert_llvm.kernels.contraction.operands import straight
from onert_llvm.kernels.contraction.register_tile import SLOTS, Block, Panel, Tile, each_block

from .gemm_blocks import as_float32, beside, each_step

WORD = 32
"""Bits of adjacent terms that are stored together for each column."""
_EachTerm = Callable[[Val, int, Sequence[Val]], None]
_PERMUTED = 16
"""Lanes of a register that one instruction permutes by the low bits of an index register."""


@frozen
class GemmCodes(Value):
    """A product with rows of A `runs * run` elements apart, whose weights are `(code - zero) * scale`.

    `b` has panels `[k * bits / 32, width]` of 32-bit words, the first term's code in the lowest bits. `scales` has each
    panel's scales by run, padded to whole registers, in float16 if they are `short` (then positive and normal). With
    `zeros` the slot of that name has zero points likewise, in bytes; else the zero point is the middle of the codes. A
    run is a multiple of the terms of a word.

    A weight is decoded once for all rows of a tile, or with `many` rows once per work tile: each thread has `room`
    bytes at `rooms` for a decoded panel. With `few` rows, the sums of a run are scaled instead of its weights, in
    `split` partial sums. With more rows, sums have the same bits as a product with the decoded weights.
    """

    tile: Tile
    run: int
    bits: int
    how: Epilogue
    zeros: bool
    few: bool
    short: bool = False
    many: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        more = (*(("zeros",) if self.zeros else ()), *(("rooms", "room") if self.many else ()))
        return ("a", "b", "c", *SLOTS, "runs", "ldc", "scales", *more, *self.how.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        weight, depth = self._weights(k), task.i64("runs") * self.run
        a = task.view("a", F32, depth, 1)

        def made(panel: Panel) -> Panel:
            room = k.view(task.own("rooms", "room"), F32, panel.vectors * k.isa.f32, 1)

            def put(term: Val, _: int, own: Sequence[Val]) -> None:
                for j, x in enumerate(own):
                    room[term, j * k.isa.f32].store(x)

            with self._each_run(k, task, panel, weight) as (_, each_term):
                each_term(put)
            return evolve(panel, address=room.address, width=panel.vectors * k.isa.f32)

        def block(own: Block) -> None:
            rows = own.rows(a)
            if self.many:
                multiply(k, task, self.tile, own, FloatTerms(), self.how, straight(rows, depth))
            else:
                self._block(k, task, own, rows, weight)

        each_block(k, task, begin, end, self.tile, block, made if self.many else None)

    def _block(
        self, k: Kernel, task: Task, block: Block, rows: Sequence[View], weight: Callable[[Val, int], Val]
    ) -> None:
        total = [[k.var(self.how.begin(k, task, block, j)) for j in range(block.vectors)] for _ in rows]
        with self._each_run(k, task, block.columns, weight) as (scale, each_term):
            parts = self._zeros(k, block) if self.few else [total]
            each_term(lambda term, at, own: self._add(k, parts[at % len(parts)], [row[term] for row in rows], own))
            if self.few:
                self._scale(k, total, parts, scale)
        store(k, task, block, self.how, [[x.get() for x in own] for own in total])

    @contextmanager
    def _each_run(
        self, k: Kernel, task: Task, panel: Panel, weight: Callable[[Val, int], Val]
    ) -> Iterator[tuple[list[Val], Callable[[_EachTerm], None]]]:
        """Loop over a panel's runs: yields the scales of a run and an emitter for its terms, whose body gets the term,
        its number in a word, and its weights.
        """
        lanes, columns, terms = k.isa.f32, range(panel.vectors), WORD // self.bits
        packed, words = k.view(panel.address, I32, panel.vectors * lanes, 1), self.run // terms
        scales = beside(k, task, panel, self.tile, "scales", I16 if self.short else F32)
        zeros = beside(k, task, panel, self.tile, "zeros", I8) if self.zeros else None
        with k.loop(task.i64("runs"), nonempty=True) as number:
            found = [scales[number, j * lanes].load(lanes) for j in columns]
            scale = [as_float32(x) for x in found] if self.short else found
            zero = zeros and [zeros[number, j * lanes].load(lanes).cast(F32, signed=False) for j in columns]

            def each_term(body: _EachTerm) -> None:
                def step(at: Val) -> None:
                    first = number * words + at
                    word = [packed[first, j * lanes].load(lanes) for j in columns]
                    for term in range(terms):
                        own = [weight(x, term) for x in word]
                        if zero:
                            own = [x - z for x, z in zip(own, zero, strict=True)]
                        if not self.few:
                            own = [x * s for x, s in zip(own, scale, strict=True)]
                        body(first * terms + term, term, own)

                each_step(k, words, step)

            yield scale, each_term

    def _zeros(self, k: Kernel, block: Block) -> list[list[list[Var]]]:
        zero = k.zeros(F32, k.isa.f32)
        of_row = range(block.vectors)
        return [[[k.var(zero) for _ in of_row] for _ in range(block.count)] for _ in range(self.tile.split)]

    def _add(self, k: Kernel, sums: Sequence[Sequence[Var]], places: Sequence[View], weights: Sequence[Val]) -> None:
        for own, place in zip(sums, places, strict=True):
            x = place.load().splat(k.isa.f32)
            for total, w in zip(own, weights, strict=True):
                total.set(k.fma(x, w, total.get()))

    def _scale(
        self, k: Kernel, total: Sequence[Sequence[Var]], parts: Sequence[Sequence[Sequence[Var]]], scale: Sequence[Val]
    ) -> None:
        """Add a run's sums, its partial sums combined pairwise, times their scales."""
        for i, own in enumerate(total):
            for j, out in enumerate(own):
                found = [part[i][j].get() for part in parts]
                while len(found) > 1:
                    found = [a + b for a, b in zip(found[::2], found[1::2], strict=True)]
                out.set(k.fma(found[0], scale[j], out.get()))

    def _weights(self, k: Kernel) -> Callable[[Val, int], Val]:
        """Decodes a term from words to floats: the code, less the middle unless there are zero points."""
        middle, lanes = 0 if self.zeros else 1 << self.bits - 1, k.isa.f32
        words = vec(I32, lanes)
        if self.bits <= 4 and lanes == _PERMUTED and k.isa.architecture == "x86_64":
            code = k.iota(I32, lanes) & ((1 << self.bits) - 1)
            table = (code - middle).cast(F32)
            name = "llvm.x86.avx512.permvar.sf.512"
            return lambda x, term: intrinsic(k.b, name, table.type, table, x.lshr(self.bits * term))
        if not middle:
            most = (1 << self.bits) - 1
            return lambda x, term: (x.lshr(self.bits * term) & most).cast(F32)
        turned = k.const(words, int.from_bytes(bytes([_tops(self.bits)]) * 4, "little", signed=True))
        up = WORD - self.bits
        return lambda x, term: (((x ^ turned) << (up - self.bits * term)) >> up).cast(F32)


def _tops(bits: int) -> int:
    """A byte with the top bit of each of its codes set."""
    return sum(1 << at for at in range(bits - 1, 8, bits))
