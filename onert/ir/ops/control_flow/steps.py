"""The steps of language models whose subgraphs have the inputs and outputs of ONNX Runtime's searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from attrs import define, field, frozen

from onert.ir.dtype import Array
from onert.ir.op import Context, require
from onert.ir.value import ByIdentity, Value


class Stepping(Protocol):
    """A model that computes the scores of the tokens that follow those given so far."""

    sequences: Array
    """The tokens that sequences begin with, [batch * beams, length]."""

    def first(self) -> Array:
        """The scores [batch * beams, vocabulary] of what follows the first tokens."""

    def following(self, sequences: Array, origins: Array | None) -> Array:
        """The same for sequences of one more token each, which continue those of `origins`, or else their own."""


def _logits(found: Sequence[Array]) -> Array:
    """Those of the last token."""
    require(found[0].ndim == 3, f"the decoder returns scores of shape {found[0].shape}, expected 3 dimensions")
    last: Array = found[0][:, -1]
    return last


@define(eq=False)
class Decoder(ByIdentity):
    """GPT-2: tokens, positions and a mask of all tokens, int32 [batch, tokens], and past keys and values of each layer
    [2, batch, heads, past, size]. Results: logits [batch, tokens, vocabulary], and all keys and values."""

    context: Context
    models: tuple[int, int]
    """For the first step, and for the others: the same, or one of the same inputs and outputs."""
    sizes: tuple[int, int, int]
    """Layers, heads and the size of a head."""
    tokens: Array
    mask: Array | None
    pad: int
    beams: int
    sequences: Array = field(init=False)
    _seen: Array = field(init=False)
    _places: Array = field(init=False)
    _state: Sequence[Array] = ()

    def __attrs_post_init__(self) -> None:
        self.sequences = self.tokens.repeat(self.beams, axis=0)

    def first(self) -> Array:
        layers, heads, size = self.sizes
        shown = self.sequences != self.pad
        self._seen = shown.astype(np.int32) if self.mask is None else self.mask.repeat(self.beams, axis=0)
        self._places = shown.sum(1).astype(np.int32)
        positions = np.where(shown, shown.cumsum(1) - 1, 0).astype(np.int32)
        empty = np.zeros((2, len(self.sequences), heads, 0, size), np.float32)
        return self._run(self.models[0], self.sequences, positions, [empty] * layers)

    def following(self, sequences: Array, origins: Array | None) -> Array:
        past = self._state if origins is None else [x[:, origins] for x in self._state]
        more = np.ones((len(self._seen), 1), np.int32)
        self._seen = np.concatenate([self._seen, more], 1)
        places, self._places = self._places, self._places + 1
        return self._run(self.models[1], sequences[:, -1:], places.reshape(-1, 1), past)

    def _run(self, model: int, tokens: Array, positions: Array, past: Sequence[Array]) -> Array:
        found = self.context.call(model, (tokens, positions, self._seen, *past))
        self._state = found[1:]
        return _logits(found)


@frozen
class Encoding(Value):
    """How an encoder and its decoder share the work.

    The encoder takes what it encodes, if `masked` a mask of its tokens, and if it makes the `first` step the decoder's
    first tokens. It returns logits of these and its own results, both only in that case, and keys and values of each of
    `layers` [batch, heads, tokens, size]: in that case those of the first tokens, and those of its results.

    The decoder takes the last token, or if `whole` all tokens; the mask; if `hidden` the encoder's results; both kinds
    of keys and values. It returns logits, and keys and values of all tokens so far.
    """

    layers: int
    masked: bool = True
    first: bool = True
    hidden: bool = False
    whole: bool = False


@define(eq=False)
class EncoderAndDecoder(ByIdentity):
    """T5 or Whisper: what is `encoded` are tokens or pictures of sounds; sequences begin with `prompts`."""

    context: Context
    models: tuple[int, int]
    how: Encoding
    sizes: tuple[int, int]
    """Heads, and the size of a head."""
    encoded: Array
    mask: Array | None
    pad: int
    prompts: Array
    beams: int
    sequences: Array = field(init=False)
    _state: Sequence[Array] = ()
    _given: Sequence[Array] = ()
    _crossed: Sequence[Array] = ()

    def __attrs_post_init__(self) -> None:
        self.sequences = self.prompts.repeat(self.beams, axis=0)

    def first(self) -> Array:
        how, own = self.how, 2 * self.how.layers
        masks = (self._shown(),) if how.masked else ()
        begun = (self.prompts,) if how.first else ()
        found = self.context.call(self.models[0], (self.encoded, *masks, *begun))
        found = tuple(x.repeat(self.beams, axis=0) for x in found)
        self._given = tuple(x.repeat(self.beams, axis=0) for x in masks)
        if how.first:
            self._given += (found[1],) if how.hidden else ()
            self._state, self._crossed = found[2 : 2 + own], found[2 + own :]
            return _logits(found)
        self._crossed = found
        heads, size = self.sizes
        self._state = [np.zeros((len(self.sequences), heads, 0, size), np.float32)] * own
        return self.following(self.sequences, None)

    def _shown(self) -> Array:
        """The mask of tokens; padding is only what is before the first one."""
        if self.mask is not None:
            return self.mask
        shown: Array = ((self.encoded != self.pad).cumsum(1) > 0).astype(np.int32)
        return shown

    def following(self, sequences: Array, origins: Array | None) -> Array:
        past = self._state if origins is None else [x[origins] for x in self._state]
        tokens = sequences if self.how.whole else sequences[:, -1:]
        found = self.context.call(self.models[1], (tokens, *self._given, *past, *self._crossed))
        self._state = found[1:]
        return _logits(found)
