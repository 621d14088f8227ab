"""One compilation that serves many lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from attrs import evolve

from onert.backend import Program, Stretch
from onert.ir import OnertError
from onert.ir.symbolic.trace import OneLengthError, Trace

from .substitution import Substitution

_RANGE_OF_ONE, _RANGE_OF_SEVERAL, _GROWTHS = 4, 2, 3
"""The factor by which lengths may exceed the longest ones so far, if a single length changes, and if several do: memory
is planned for the longest lengths that a recipe serves. It doubles up to three times as lengths keep growing, as those
of a decoder's cache do with every token: then only the cache's, which keeps the first factor."""

MOST, MOST_UNUSED = 24, 4
"""How many recently used recipes are cached, and how many may be made in vain before no more are, until lengths have
doubled again: decisions that depend on a size may hold for all larger ones."""

Compiled = Callable[[tuple[int, ...]], Program]
Stretched = Callable[[Trace, Program, Callable[[], None]], Stretch | None]


class Recipe:
    """A program compiled for symbolic lengths, and the conditions under which it is valid for others.

    `same_as` has, for each length, the index of the first length that is always equal to it: both share one symbol.
    `longest` are the longest lengths so far, and `grown` is how often lengths have exceeded what recipes served. If one
    of several does so `alone`, it has more room, and the others have less.
    Schedules are chosen for each case of lengths.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        longest: Sequence[int],
        grown: int,
        same_as: Sequence[int],
        compiled: Compiled,
        stretched: Stretched,
        alone: int | None = None,
    ) -> None:
        growths = min(grown, _GROWTHS)
        factors = dict.fromkeys(same_as, (_RANGE_OF_ONE if len(set(same_as)) == 1 else _RANGE_OF_SEVERAL) << growths)
        if alone is not None:
            factors = {at: _RANGE_OF_ONE << growths if at == alone else _RANGE_OF_SEVERAL for at in factors}
        self.most = most = tuple(factors[at] * max(length, 1) for at, length in zip(same_as, longest, strict=True))
        """The longest lengths that it may serve."""
        self._trace = Trace(lengths, most, tuple(same_as))
        symbols = self._trace.lengths
        for at, (symbol, length) in enumerate(zip(symbols, lengths, strict=True)):
            if same_as[at] != at:
                self._trace.hold(symbol == symbols[same_as[at]])
                continue
            self._trace.hold(symbol >= 1 if length else symbol == 0)
            self._trace.hold(symbol <= most[at])
        template = compiled(tuple(symbols[at] for at in same_as))
        self.used = False
        """Whether it was used since this was last reset: executions request no program while a frame serves them."""
        self._trace.cases = None  # it needs much memory
        self._stretch = stretched(self._trace, template, self._use)
        self._substitution = Substitution(self._trace, template)  # only now, when the trace is complete
        self.is_general = not self._trace.is_fixed(*range(len(lengths)))

    def _use(self) -> None:
        self.used = True

    def program(self, lengths: Sequence[int]) -> Program | None:
        """The program for other lengths; None if they violate a condition."""
        numbers = self._trace.at(lengths)
        if numbers is None:
            return None
        program: Program = self._substitution.value(numbers)
        return evolve(program, stretch=self._stretch)


class Recipes:
    """The recipes of one entry with some open dimensions, given as positions of inputs and axes.

    Dimensions of different inputs that have always been equal so far, such as a batch, are treated as one.
    """

    def __init__(self, opened: Sequence[tuple[int, int]]) -> None:
        self._recipes: tuple[Recipe, ...] = ()
        self._unused = self._longest = self._grown = 0
        self._most: list[int] = []
        """The longest lengths that recipes serve; none if there is no recipe."""
        self._inputs = tuple(position for position, _ in opened)
        self._same_as: tuple[int, ...] | None = None

    def _always_equal(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """For each length, the index of the first one that has been equal to it now and in all earlier calls."""
        earlier = self._same_as or (0,) * len(lengths)
        found: list[int] = []
        for at, length in enumerate(lengths):
            equal = (
                first
                for first in range(at)
                if found[first] == first
                and earlier[first] == earlier[at]
                and lengths[first] == length
                and all(self._inputs[i] != self._inputs[at] for i in range(at) if found[i] == first)
            )
            found.append(next(equal, at))
        return tuple(found)

    def program(
        self, lengths: tuple[int, ...], longest: tuple[int, ...], compiled: Compiled, stretched: Stretched
    ) -> Program | None:
        """The program for these lengths, from an existing recipe or a new one. For a new one `compiled` compiles the
        program with symbolic lengths, and `stretched` makes its stretch; it serves lengths somewhat greater than the
        `longest` so far. None if there is no recipe, so that the program has to be compiled for these lengths
        individually.
        """
        self._same_as = self._always_equal(lengths)
        if any(recipe.used for recipe in self._recipes):
            self._unused = 0
            for recipe in self._recipes:
                recipe.used = False
        for recipe in self._recipes:
            program = recipe.program(lengths)
            if program is not None:
                self._unused = 0
                self._recipes = (recipe, *(other for other in self._recipes if other is not recipe))
                return program
        if max(lengths) > 2 * self._longest:
            self._unused, self._longest = 0, max(lengths)
        if self._unused >= MOST_UNUSED:
            return None
        self._unused += 1
        made = self._made(lengths, longest, compiled, stretched)
        if made is None or not made.is_general:
            return None
        self._most = [max(pair) for pair in zip_longest(made.most, self._most, fillvalue=0)]
        self._recipes = (made, *self._recipes[: MOST - 1])
        return made.program(lengths)

    def _made(
        self, lengths: tuple[int, ...], longest: tuple[int, ...], compiled: Compiled, stretched: Stretched
    ) -> Recipe | None:
        """A new recipe; None if lengths do not allow one. If they are invalid, individual compilation reports it."""
        assert self._same_as is not None
        grew = {at for at, length, most in zip(self._same_as, lengths, self._most, strict=False) if length > most}
        self._grown += bool(grew)
        others = [at for at in set(self._same_as) if at not in grew]
        are_short = others and all(2 * lengths[at] <= longest[at] for at in others)  # as a decoder's steps
        alone = min(grew) if len(grew) == 1 and are_short else None
        for grown, growing in dict.fromkeys(((self._grown, alone), (0, None))):
            try:
                return Recipe(lengths, longest, grown, self._same_as, compiled, stretched, growing)
            except OneLengthError:
                return None
            except OnertError:  # a smaller range may need less memory than is allowed
                continue
        return None
