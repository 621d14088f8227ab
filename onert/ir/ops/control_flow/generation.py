"""What searches for sequences have in common: scores of the next tokens, sequences so far, and finished ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import define, field, frozen

from onert.ir.dtype import Array
from onert.ir.op import require
from onert.ir.value import ByIdentity, Value

LEAST = np.finfo(np.float32).min
"""The score of tokens that may not follow."""
MOST_TOKENS, MOST_BEAMS = 4096, 128
"""ONNX Runtime's limits for the length of sequences and for beams."""


@frozen
class Timestamps(Value):
    """Whisper's tokens for times, from `begin` on, which are in pairs and do not decrease; others never follow.

    Of `never` none follow at all, and of `not_again` none after the first time. Source: ONNX Runtime's logits processor
    of this name.
    """

    begin: int
    eos: int
    never: tuple[int, ...] = ()
    not_again: tuple[int, ...] = ()
    first: int = 50
    """The greatest first time."""

    def apply(self, row: Array, own: Array) -> None:
        """Change the scores of what follows a sequence, in place."""
        times = np.flatnonzero(own >= self.begin)
        given = int(times[0]) + 1 if len(times) else len(own)
        row[[at for at in self.never if 0 <= at < len(row)]] = LEAST
        if len(own) > given:
            row[[at for at in self.not_again if 0 <= at < len(row)]] = LEAST
        last = len(own) > 0 and own[-1] >= self.begin
        before = len(own) <= given or own[-2] >= self.begin
        if last:
            row[slice(self.begin, None) if before else slice(self.eos)] = LEAST
        if len(times):
            row[self.begin : int(own[times[-1]]) + (not last or before)] = LEAST
        if len(own) == given:
            row[self.begin + self.first + 1 :] = LEAST
        self._prefer(row)

    def _prefer(self, row: Array) -> None:
        """Exclude words if times together are more probable than any of them."""
        words, times = row[: self.begin], row[self.begin :]
        if not len(times) or times.max() <= LEAST:
            return
        top = times.max()
        total = np.log(np.exp(times[times > LEAST] - top).sum()) + top
        if len(words) and total > words.max():
            words[:] = LEAST


@frozen(eq=False)
class Limits(ByIdentity):
    """What may follow a sequence, which is the last step's scores changed in this order."""

    eos: int
    min_length: int = 0
    repetition: float = 1.0
    ngram: int = 0
    words: Array | None = None
    first_words: Array | None = None
    """Which words of the vocabulary may follow, and in the first step, for each batch."""
    temperature: float = 1.0
    times: Timestamps | None = None

    def apply(self, scores: Array, sequences: Array, step: int) -> None:
        """Change the scores [rows, vocabulary] of what follows the sequences [rows, length], in place."""
        rows, length = sequences.shape
        for row, own in zip(scores, sequences, strict=True):
            if self.repetition != 1:
                used = np.unique(own)
                old = row[used]
                factor = np.float32(self.repetition)
                row[used] = np.where(old < 0, old * factor, old / factor)
            if 0 < self.ngram <= length:
                row[list(_repeating(own, self.ngram))] = LEAST
        if self.words is not None:
            scores[:, self.words == 0] = LEAST
        if self.first_words is not None and step == 1:
            each = rows // max(len(self.first_words), 1)
            scores[np.repeat(self.first_words == 0, each, axis=0)] = LEAST
        if length < self.min_length:
            scores[:, self.eos] = LEAST
        if self.temperature != 1 and self.temperature > 0:
            with np.errstate(over="ignore"):
                scores /= np.float32(self.temperature)
        if self.times is not None:
            for row, own in zip(scores, sequences, strict=True):
                self.times.apply(row, own)


def _repeating(own: Array, size: int) -> Iterator[int]:
    """The tokens that would repeat `size` adjacent ones of a sequence."""
    last = own[len(own) - size + 1 :]
    for at in range(len(own) - size + 1):
        if np.array_equal(own[at : at + size - 1], last):
            yield int(own[at + size - 1])


def log_softmax(x: Array) -> Array:
    """The logarithm of the softmax of each row."""
    moved = x - x.max(1, keepdims=True)
    found: Array = moved - np.log(np.exp(moved).sum(1, keepdims=True))
    return found


def _greatest(x: Array, count: int) -> Array:
    """Where the greatest elements are, in descending order, the first of equal ones first."""
    require(count <= len(x), f"there are {len(x)} scores, expected at least {count}")
    few = np.flatnonzero(x >= np.partition(x, len(x) - count)[len(x) - count])
    found: Array = few[np.argsort(-x[few], kind="stable")[:count]]
    return found


@define(eq=False)
class Hypotheses(ByIdentity):
    """The best finished sequences of a batch, at most `beams`, in descending order of scores."""

    beams: int
    length_penalty: float
    found: list[tuple[float, Array]] = field(factory=list)
    done: bool = False

    def normalized(self, total: float, length: int) -> float:
        """A sum of logarithms divided by a power of the length, in float32."""
        return float(np.float32(total) / np.power(np.float32(length), np.float32(self.length_penalty)))

    def add(self, sequence: Array, total: float) -> None:
        score = self.normalized(total, len(sequence))
        if len(self.found) == self.beams:
            if score <= self.found[-1][0]:
                return
            self.found.pop()
        at = len(self.found)
        while at and score > self.found[at - 1][0]:
            at -= 1
        self.found.insert(at, (score, sequence.copy()))

    def cannot_improve(self, best: float, length: int) -> bool:
        return self.found[-1][0] >= self.normalized(best, length)


@define(eq=False)
class Beams(ByIdentity):
    """The sequences [batch * beams, length] of a search that continues the best ones, and their scores."""

    batch: int
    beams: int
    limits: Limits
    pad: int
    early_stopping: bool
    length_penalty: float
    sequences: Array
    scores: Array = field(init=False)
    finished: list[Hypotheses] = field(init=False)
    steps: list[Array] | None = None
    """The scores of all tokens in each step [batch * beams, vocabulary], if they are wanted."""
    taken: int = 0
    """The number of steps."""

    def __attrs_post_init__(self) -> None:
        self.scores = np.zeros((self.batch, self.beams), np.float32)
        self.scores[:, 1:] = -1e9
        self.finished = [Hypotheses(self.beams, self.length_penalty) for _ in range(self.batch)]

    @property
    def done(self) -> bool:
        return all(each.done for each in self.finished)

    def advance(self, logits: Array) -> Array:
        """Add the next tokens, given the logits [batch * beams, vocabulary]; returns the sequences that they follow."""
        scores = log_softmax(logits)
        self.taken += 1
        self.limits.apply(scores, self.sequences, self.taken)
        scores += self.scores.reshape(-1, 1)
        if self.steps is not None:
            self.steps.append(scores)
        wide = scores.reshape(self.batch, -1)
        order = np.stack([_greatest(row, 2 * self.beams) for row in wide])
        best = np.take_along_axis(wide, order, 1)
        tokens, origins = order % logits.shape[1], order // logits.shape[1]
        following = np.full((self.batch, self.beams), self.pad, np.int32)
        sources = np.zeros((self.batch, self.beams), np.int64)
        for item, finished in enumerate(self.finished):
            if finished.done:
                self.scores[item] = 0
                continue
            self._of_batch(item, best[item], tokens[item], origins[item], following[item], sources[item])
            if len(finished.found) == self.beams:
                # The range of scores begins too early for all but the first batch, as in ONNX Runtime.
                seen = best.reshape(-1)[item * self.beams : item * self.beams + 2 * self.beams]
                length = self.sequences.shape[1]
                finished.done = self.early_stopping or finished.cannot_improve(float(seen.max()), length)
        flat = sources.reshape(-1)
        self.sequences = np.concatenate([self.sequences[flat], following.reshape(-1, 1)], 1)
        return flat

    def _of_batch(
        self, item: int, best: Array, tokens: Array, origins: Array, following: Array, sources: Array
    ) -> None:
        taken = 0
        for rank, (score, token, origin) in enumerate(zip(best, tokens, origins, strict=True)):
            source = item * self.beams + int(origin)
            if token == self.limits.eos:
                if rank < self.beams:
                    self.finished[item].add(self.sequences[source], float(score))
                continue
            self.scores[item, taken], following[taken], sources[taken] = score, token, source
            taken += 1
            if taken == self.beams:
                return
        require(False, "there are fewer tokens than beams")

    def results(self, count: int, max_length: int) -> tuple[Array, Array]:
        """The best sequences [batch, count, max_length], padded, and their scores."""
        found = np.full((self.batch, count, max_length), self.pad, np.int32)
        scores = np.zeros((self.batch, count), np.float32)
        for item, finished in enumerate(self.finished):
            if not finished.done:
                for beam in range(self.beams):
                    finished.add(self.sequences[item * self.beams + beam], float(self.scores[item, beam]))
            for at, (score, sequence) in enumerate(finished.found[:count]):
                found[item, at, : len(sequence)], scores[item, at] = sequence, score
        return found, scores
