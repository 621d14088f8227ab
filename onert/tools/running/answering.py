"""Interpret outputs, and print and draw the answers as they arrive."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from onert.backend import TensorInfo
from onert.frontend.metadata import ModelMetadata
from onert.ir import Array, ExecutionError
from onert.tools import answers, drawing
from onert.tools.inputs import Feed

from .rounds import Outcome


@define(eq=False)
class Answers:
    """Interprets outcomes, prints messages with `say`, and draws the answers if --show is given.

    `read` holds the answers so far; `_sums` and `_pieces` are the summed scores of a sound's pieces and their number.
    """

    options: argparse.Namespace
    metadata: ModelMetadata
    feed: Feed
    say: Callable[[str], object]
    _wanted: answers.Wanted | None = field(default=None, init=False)
    read: list[tuple[str, answers.Answer | None]] = field(factory=list)
    _said: set[str] = field(factory=set)
    _names: set[str] = field(factory=set)
    _sums: list[Array] = field(factory=list)
    _pieces: int = 0
    _film: drawing.Film | None = None

    def __attrs_post_init__(self) -> None:
        if self.options.labels is not None:
            self.wanted()

    def wanted(self) -> answers.Wanted:
        """What the options demand of the answers. Raises ExecutionError if the labels cannot be read."""
        if self._wanted is None:
            options = self.options
            labels = answers.Labels() if options.labels is None else answers.read_labels(options.labels)
            self._wanted = answers.Wanted(options.topk, options.min_score, labels, options.task)
        return self._wanted

    @property
    def asked(self) -> bool:
        """Whether an option demands classes (--topk or --labels)."""
        options = self.options
        return options.topk is not None or options.labels is not None

    def add(self, outcome: Outcome, infos: tuple[TensorInfo, ...]) -> answers.Answer | None:
        """Interpret an outcome, and draw it if --show is given. None if nothing is recognised or wanted."""
        pictured = next((one for one in outcome.given if one.picture is not None), None)
        options = self.options
        wanted = self.asked or options.task is not None or options.show is not None or options.min_score is not None
        is_file = pictured is not None or self.feed.pieces or any(one.is_sound for one in outcome.given)
        if not (wanted or is_file):
            return None
        plane = None if pictured is None or pictured.placement is None else pictured.placement.plane
        run_outputs = answers.RunOutputs(
            tuple(infos), answers.real_outputs(infos, outcome.outputs), self.wanted(), self.metadata, plane
        )
        answer = answers.recognise(run_outputs, asked=self.asked)
        if answer is not None and self.feed.pieces and answer.task == "classes":
            self._pieces += 1
            arrays = [array.astype(np.float64) for array in run_outputs.arrays]
            self._sums = arrays if self._pieces == 1 else [a + b for a, b in zip(self._sums, arrays, strict=True)]
            if self._pieces < (self.feed.count or 0):
                return None
            means = tuple((array / self._pieces).astype(np.float32) for array in self._sums)
            answer = answers.recognise(
                answers.RunOutputs(tuple(infos), means, self.wanted(), self.metadata, plane), asked=self.asked
            )
            self._once(f"scores are averaged over {self._pieces} pieces of the sound")
        if answer is None:
            self._once(answers.hint(run_outputs))
        elif pictured is not None and pictured.placement is not None:
            answer = answers.in_picture(answer, pictured.placement)
        if answer is not None:
            self._once(answer.said)
        if options.show is not None:
            self._show(outcome, answer)
        self.read.append((outcome.given[self.feed.position or 0].source, answer))
        return answer

    def _once(self, sentence: str) -> None:
        if sentence and sentence not in self._said:
            self._said.add(sentence)
            self.say(sentence)

    def _show(self, outcome: Outcome, answer: answers.Answer | None) -> None:
        pictured = next((one for one in outcome.given if one.picture is not None), None)
        options = self.options
        if pictured is None or pictured.picture is None:
            raise ExecutionError("--show draws onto a picture, but no input is a picture")
        if answer is None:
            raise ExecutionError("--show needs a result to draw, but the outputs were not recognised; use --task")
        image = drawing.drawn(answer, pictured.picture.rgb)
        if options.show.suffix.lower() in drawing.FILMS:
            self._film = self._film or drawing.Film(options.show, self.feed.rate)
            self._film.add(image)
            return
        path = self._place(Path(pictured.picture.name).name)
        drawing.write_picture(image, path)
        self.say(f"{pictured.picture.name} is drawn to {path}")

    def close(self) -> None:
        """Finish the video that --show writes, if any."""
        film, self._film = self._film, None
        if film is not None:
            film.close()
            self.say(f"{film.count} frames are drawn to {film.path}")

    def _place(self, name: str) -> Path:
        """The file to draw the next item to: --show itself, or a numbered or named file for each item."""
        path: Path = self.options.show
        number = len(self.read) + 1
        if path.suffix:
            return path if self.feed.count == 1 else path.with_stem(f"{path.stem}-{number:04}")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExecutionError(f"the folder {path} cannot be created: {error.strerror or error}") from error
        stem = Path(name).stem
        if stem in self._names:
            stem = f"{stem}-{number:04}"
        self._names.add(stem)
        return path / f"{stem}.png"


def lines_of(answer: answers.Answer | None) -> list[str]:
    """An answer as lines of text; empty if nothing was recognised."""
    return [] if answer is None else answers.answer_lines(answer)


def as_json(answer: answers.Answer | None) -> list[dict[str, Any]]:
    """The findings of an answer for --json."""
    return [] if answer is None else [one.as_json() for one in answer.found]
