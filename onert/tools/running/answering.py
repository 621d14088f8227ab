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
from onert.tools.answers import (
    Answer,
    Labels,
    RunOutputs,
    Wanted,
    answer_lines,
    hint,
    in_picture,
    read_labels,
    real_outputs,
    recognise,
)
from onert.tools.drawing import FILMS, Film, drawn, write_picture
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
    wanted: Wanted = field(init=False)
    read: list[tuple[str, Answer | None]] = field(factory=list)
    _said: set[str] = field(factory=set)
    _names: set[str] = field(factory=set)
    _sums: list[Array] = field(factory=list)
    _pieces: int = 0
    _film: Film | None = None

    def __attrs_post_init__(self) -> None:
        options = self.options
        labels = Labels() if options.labels is None else read_labels(options.labels)
        self.wanted = Wanted(options.topk, options.min_score, labels, options.task)

    @property
    def asked(self) -> bool:
        """Whether an option demands classes (--topk or --labels)."""
        options = self.options
        return options.topk is not None or options.labels is not None

    def add(self, outcome: Outcome, infos: tuple[TensorInfo, ...]) -> Answer | None:
        """Interpret an outcome, and draw it if --show is given. None if nothing is recognised or wanted."""
        pictured = next((one for one in outcome.given if one.picture is not None), None)
        options = self.options
        wanted = self.asked or options.task is not None or options.show is not None or options.min_score is not None
        is_file = pictured is not None or self.feed.pieces or any(one.is_sound for one in outcome.given)
        if not (wanted or is_file):
            return None
        plane = None if pictured is None or pictured.placement is None else pictured.placement.plane
        run_outputs = RunOutputs(tuple(infos), real_outputs(infos, outcome.outputs), self.wanted, self.metadata, plane)
        answer = recognise(run_outputs, asked=self.asked)
        if answer is not None and self.feed.pieces and answer.task == "classes":
            self._pieces += 1
            arrays = [array.astype(np.float64) for array in run_outputs.arrays]
            self._sums = arrays if self._pieces == 1 else [a + b for a, b in zip(self._sums, arrays, strict=True)]
            if self._pieces < (self.feed.count or 0):
                return None
            means = tuple((array / self._pieces).astype(np.float32) for array in self._sums)
            answer = recognise(RunOutputs(tuple(infos), means, self.wanted, self.metadata, plane), asked=self.asked)
            self._once(f"scores are averaged over {self._pieces} pieces of the sound")
        if answer is None:
            self._once(hint(run_outputs))
        elif pictured is not None and pictured.placement is not None:
            answer = in_picture(answer, pictured.placement)
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

    def _show(self, outcome: Outcome, answer: Answer | None) -> None:
        pictured = next((one for one in outcome.given if one.picture is not None), None)
        options = self.options
        if pictured is None or pictured.picture is None:
            raise ExecutionError("--show draws onto a picture, but no input is a picture")
        if answer is None:
            raise ExecutionError("--show needs a result to draw, but the outputs were not recognised; use --task")
        image = drawn(answer, pictured.picture.rgb)
        if options.show.suffix.lower() in FILMS:
            self._film = self._film or Film(options.show, self.feed.rate)
            self._film.add(image)
            return
        path = self._place(Path(pictured.picture.name).name)
        write_picture(image, path)
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


def lines_of(answer: Answer | None) -> list[str]:
    """An answer as lines of text; empty if nothing was recognised."""
    return [] if answer is None else answer_lines(answer)


def as_json(answer: Answer | None) -> list[dict[str, Any]]:
    """The findings of an answer for --json."""
    return [] if answer is None else [one.as_json() for one in answer.found]
