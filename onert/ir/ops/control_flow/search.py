"""Searches for sequences of tokens, whose models are subgraphs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from attrs import evolve, field, frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Context, Op, operands, require, with_absent
from onert.ir.types import CallTypes, TensorType

from .generation import MOST_BEAMS, MOST_TOKENS, Beams, Limits, Timestamps
from .sampling import Drawing, Generator
from .steps import Decoder, EncoderAndDecoder, Encoding, Stepping


@frozen
class Search(Op):
    """A search for the tokens that a language model gives the best scores.

    `models` are subgraphs: a decoder that continues a prompt, with another one before it if that makes the first step,
    or an encoder and its decoder, whose sequences begin with the token `start` unless there is a prompt; see `steps.py`
    for what they take and return. Each of `layers` has `heads` heads of `size` features in its state. Sequences end
    with the token `eos` and are filled with `pad`. No token follows that makes `ngram` adjacent ones appear twice.
    """

    models: tuple[int, ...]
    layers: int
    heads: int
    size: int
    vocabulary: int
    eos: int
    pad: int
    start: int = -1
    ngram: int = 0
    encoding: Encoding = field(factory=lambda: Encoding(0))
    parts: tuple[int, ...] = ()
    """The parts that the compiler made of `models`, which are empty then."""

    callees: ClassVar[tuple[str, ...]] = ("models",)

    def of_parts(self, numbers: tuple[int, ...]) -> Search:
        """The same search, whose models are parts of these numbers."""
        return evolve(self, models=(), parts=numbers)

    @property
    def encodes(self) -> bool:
        """Whether the models are an encoder and its decoder, which has at least one layer."""
        return self.encoding.layers > 0

    def check(self, tokens: TensorType, *masks: TensorType | None) -> None:
        sounds = self.encodes and not self.encoding.masked
        kinds = (DType.FLOAT32, 3) if sounds else (DType.INT32, 2)
        fits = tokens.dtype is kinds[0] and tokens.rank == kinds[1]
        require(fits, f"what is read is {tokens}, expected {kinds[0].text} of {kinds[1]} dimensions")
        for mask, rank in zip(masks, (1, 2, 2), strict=True):
            fits = mask is None or (mask.dtype is DType.INT32 and mask.rank == rank)
            require(fits, f"a mask is {mask}, expected i32 of {rank} dimensions")

    def check_subgraphs(self, caller: Any, inputs: Any, outputs: Any, called: Any) -> str | None:
        if not called:
            return None
        how = self.encoding
        takes, results = 3 + self.layers, 1 + self.layers
        if self.encodes:
            takes, results = 1 + how.masked + how.hidden + 4 * self.layers, 1 + 2 * self.layers
        for decoder in called[self.encodes :]:
            if len(decoder.inputs) != takes or len(decoder.outputs) != results:
                return f"the decoder has {len(decoder.inputs)} inputs and {len(decoder.outputs)} outputs"
        return None

    def stepping(
        self, context: Context, tokens: Array, mask: Array | None, beams: int, prompts: Array | None = None
    ) -> Stepping:
        models, sizes = self.parts or self.models, (self.heads, self.size)
        mask = mask if not self.encodes or self.encoding.masked else None
        shown = tokens if prompts is None else prompts
        require(mask is None or mask.shape == tokens.shape, f"the mask does not have the shape of {tokens.shape}")
        require(len(shown) == len(tokens), f"there are {len(shown)} prompts for {len(tokens)} inputs")
        pair = (models[0], models[-1])
        if not self.encodes:
            return Decoder(context, pair, (self.layers, *sizes), tokens, mask, self.pad, beams)
        if prompts is None:
            prompts = np.full((len(tokens), 1), self.start, np.int32)
        return EncoderAndDecoder(context, pair, self.encoding, sizes, tokens, mask, self.pad, prompts, beams)

    def limits(
        self, least: Array | None, repetition: Array | None, words: Array | None, first_words: Array | None
    ) -> Limits:
        """What may follow. Raises RuleError if the masks do not have an entry for each word."""
        for x, what in ((words, "words"), (first_words, "first words")):
            fits = x is None or x.shape[-1] == self.vocabulary
            require(fits, f"the mask of {what} does not have {self.vocabulary} entries")
        penalty = _number(repetition)
        require(penalty > 0, f"the penalty for repetitions is {penalty}, expected more than 0")
        return Limits(self.eos, int(_number(least)), penalty, self.ngram, words, first_words)

    def continued(
        self, steps: Stepping, tokens: Array, end: int, limits: Limits, choose: Callable[[Array], Array]
    ) -> Array:
        """The sequences, to which the token that is chosen by its score is added in each step."""
        batch, length = tokens.shape
        sequences, ended, logits = tokens, np.zeros(batch, np.bool_), steps.first()
        for step in range(1, end - length + 1):
            scores = self.scores_of(logits, batch)
            limits.apply(scores, sequences, step)
            found = choose(scores)
            ended |= found == self.eos
            found[ended] = self.pad
            sequences = np.concatenate([sequences, found[:, None]], 1)
            if ended.all() or sequences.shape[1] == end:
                break
            logits = steps.following(sequences, None)
        return np.pad(sequences, ((0, 0), (0, end - sequences.shape[1])), constant_values=self.pad)

    def scores_of(self, logits: Array, rows: int) -> Array:
        """The logits of the words, of which the model may have more for its own use."""
        fits = logits.ndim == 2 and len(logits) == rows and logits.shape[1] >= self.vocabulary
        require(fits, f"the decoder returns scores of shape {logits.shape}, expected {rows} rows of {self.vocabulary}")
        return logits[:, : self.vocabulary].astype(np.float32)


def _number(x: Array | None) -> float:
    """The element of an operand that is one number."""
    assert x is not None
    return float(x.reshape(-1)[0])


def _length(tokens: int, most: Array | None) -> int:
    found = int(_number(most))
    require(found > tokens, f"the length is limited to {found}, expected more than the {tokens} given tokens")
    require(found <= MOST_TOKENS, f"the length is limited to {found}, expected at most {MOST_TOKENS}")
    return found


@frozen
class GreedySearch(Search):
    """Continues sequences by one token after another: the best one, or with a `drawing` one drawn at random.

    - `tokens`: int32 [batch, length], the prompts
    - `most`, `least`: int32, the length of the results, and that before which no sequence ends
    - `repetition`: float32, the factor of scores of tokens that were used
    - `words`, `first_words`: int32 [vocabulary] and [batch, vocabulary], optional: 0 for tokens that do not follow at
      all, and as the first one
    - `mask`: int32 [batch, length], optional: 0 for tokens to ignore; those that are `pad` if absent
    - `seed`: int32, of the random numbers for a drawing, whose scores are divided by `temperature`

    Result: int32 [batch, most]. Source: ONNX Runtime's GreedySearch and Sampling.
    """

    drawing: Drawing | None = None
    temperature: float = 1.0

    params = operands("tokens most least repetition words? first_words? mask? seed?")

    def infer(self, tokens: TensorType, *rest: TensorType | None) -> TensorType:
        words, first_words, mask, seed = with_absent(rest[3:], 4)
        self.check(tokens, words, first_words, mask)
        require((seed is None) == (self.drawing is None), "a seed is given without a drawing, or is missing for one")
        return TensorType(DType.INT32, (tokens.shape[0], None))

    def evaluate_in(self, context: Context, types: CallTypes, tokens: Array, *rest: Array | None) -> Array:
        most, least, repetition, words, first_words, mask, seed = with_absent(rest, 7)
        end = _length(tokens.shape[1], most)
        limits = evolve(self.limits(least, repetition, words, first_words), temperature=self.temperature)
        steps = self.stepping(context, tokens, mask, 1)
        drawing = self.drawing
        if drawing is None or seed is None:
            return self.continued(steps, tokens, end, limits, lambda scores: scores.argmax(1).astype(np.int32))
        numbers = Generator.of(int(_number(seed)))
        return self.continued(steps, tokens, end, limits, lambda scores: drawing.draw(scores, numbers))


@frozen
class BeamSearch(Search):
    """Continues several sequences for each prompt, those with the best sums of logarithms of probabilities.

    - `tokens`: int32 [batch, length], the prompts, or what an encoder reads
    - `most`, `least`: int32, the length of the results, and that before which no sequence ends
    - `beams`, `count`: int32, the sequences that are continued, and those that are returned
    - `length_penalty`: float32, the power of the length by which sums are divided
    - `repetition`, `words`, `first_words`, `mask`: see `GreedySearch`
    - `prompts`: int32 [batch, length], optional: what sequences of an encoder's decoder begin with
    - `temperature`: float32, optional: by which scores are divided
    - `timed`: int32, optional: 1 if sequences have `times`

    With `early_stopping`, a batch is finished with its first `beams` sequences that end, otherwise when no other can
    become better. Results: the sequences, int32 [batch, count, most], the logarithms of their probabilities [batch,
    count], and with `scores` those of all tokens in each step [most - length, batch, beams, vocabulary]. Source: ONNX
    Runtime's BeamSearch.
    """

    early_stopping: bool = False
    scores: bool = False
    times: Timestamps | None = None

    params = operands(
        "tokens most least beams count length_penalty repetition words? first_words? mask? prompts? temperature? timed?"
    )

    def infer(self, tokens: TensorType, *rest: TensorType | None) -> tuple[TensorType, ...]:
        self.check(tokens, *with_absent(rest[6:], 6)[:3])
        batch = tokens.shape[0]
        found = TensorType(DType.INT32, (batch, None, None)), TensorType(DType.FLOAT32, (batch, None))
        every = TensorType(DType.FLOAT32, (None, batch, None, self.vocabulary))
        return (*found, every) if self.scores else found

    def evaluate_in(self, context: Context, types: CallTypes, tokens: Array, *rest: Array | None) -> tuple[Array, ...]:
        most, least, beams, count, length_penalty, repetition, *optional = with_absent(rest, 12)
        words, first_words, mask, prompts, temperature, timed = optional
        each, returned = int(_number(beams)), int(_number(count))
        require(1 <= each <= MOST_BEAMS, f"there are {each} beams, expected 1 to {MOST_BEAMS}")
        require(1 <= returned <= each, f"{returned} sequences are returned, expected 1 to {each}")
        steps = self.stepping(context, tokens, mask, each, prompts)
        begun = steps.sequences
        batch, length, end = len(tokens), begun.shape[1], _length(begun.shape[1], most)
        limits = self.limits(least, repetition, words, first_words)
        if temperature is not None:
            limits = evolve(limits, temperature=_number(temperature))
        if timed is not None and int(_number(timed)) == 1:
            limits = evolve(limits, times=self.times)
        penalty = _number(length_penalty)
        made: list[Array] | None = [] if self.scores else None
        search = Beams(batch, each, limits, self.pad, self.early_stopping, penalty, begun, made)
        logits = steps.first()
        while True:
            origins = search.advance(self.scores_of(logits, batch * each))
            if search.done or search.sequences.shape[1] == end:
                break
            logits = steps.following(search.sequences, origins)
        results = search.results(returned, end)
        if made is None:
            return results
        sizes = (batch, each, self.vocabulary)
        context.hold(0, beside=4 * (end - length) * math.prod(sizes))
        every = np.zeros((end - length, *sizes), np.float32)
        every[: len(made)] = np.reshape(made, (-1, *sizes))
        return (*results, every)
