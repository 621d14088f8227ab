"""`Calculate`: elementwise expressions, written as recipes such as `@0=Exp(Sub(%0,%1));@1=Sum(@0)`.

```
recipe     := variable = expression {; variable = expression}
expression := Name(argument, ...) | variable
argument   := variable | expression
variable   := % input | # constant input | ! input | @ output | $ temporary | _ system constant, then digits
```
Inputs are numbered from 0 in the operation's order, whatever their prefix. A `'` after a variable is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from onert.frontend.flow.emitter import Emitter, Node, Rule
from onert.ir import RuleError

from .elementwise import FUNCTIONS
from .reductions import KINDS, reduced

NUMBERS = (0.0, 1.0, 2.0, 0.5, -1.0, 9.0, -9.0)
"""The system constants `_0` to `_6`."""
_TOKEN = re.compile(r"\s*(?:([%#!@$_])(\d{1,9})'?|([A-Za-z][A-Za-z0-9]*)|([=(),;]))")
_DEEPEST = 64
Token = tuple[str, str]


def _tokens(text: str) -> Iterator[Token]:
    """Yield tokens as pairs: (`%`, `0`), (`name`, `Exp`), (`(`, ``)."""
    at = 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise RuleError(f"recipe {text[:80]!r} is malformed at character {at}")
        at = found.end()
        sign, number, name, mark = found.groups()
        yield (sign, number) if sign else ("name", name) if name else (mark, "")


class _Recipe:
    """Parses a recipe, and adds its operations."""

    def __init__(self, e: Emitter, node: Node, text: str) -> None:
        self._e = e
        self._node = node
        self._tokens = list(_tokens(text))
        self._at = 0
        self._made: dict[Token, int] = {}

    def results(self) -> Sequence[int]:
        while True:
            target = self._take("@", "$")
            if target in self._made:
                raise RuleError(f"the recipe computes {''.join(target)} twice")
            self._take("=")
            self._made[target] = self._expression(0)
            if not self._next(";"):
                break
        if self._at != len(self._tokens):
            raise RuleError(f"the recipe has trailing text: {''.join(self._tokens[self._at])!r}")
        return [self._output(number) for number in range(len(self._node.results))]

    def _output(self, number: int) -> int:
        found = self._made.get(("@", str(number)))
        if found is None:
            raise RuleError(f"the recipe does not compute @{number}")
        return found

    def _next(self, *signs: str) -> Token | None:
        """Consume the next token if its sign is one of these."""
        if self._at < len(self._tokens) and self._tokens[self._at][0] in signs:
            self._at += 1
            return self._tokens[self._at - 1]
        return None

    def _take(self, *signs: str) -> Token:
        found = self._next(*signs)
        if found is None:
            got = "".join(self._tokens[self._at]) if self._at < len(self._tokens) else "its end"
            raise RuleError(f"the recipe has {got!r} as token {self._at}, expected one of {' '.join(signs)}")
        return found

    def _expression(self, depth: int) -> int:
        if depth > _DEEPEST:
            raise RuleError(f"the recipe nests expressions more than {_DEEPEST} deep")
        sign, text = self._take("name", "%", "#", "!", "@", "$", "_")
        if sign != "name":
            return self._variable(sign, text)
        self._take("(")
        arguments = [self._expression(depth + 1)]
        while self._next(","):
            arguments.append(self._expression(depth + 1))
        self._take(")")
        return self._call(text, arguments)

    def _variable(self, sign: str, text: str) -> int:
        number = int(text)
        if sign == "_":
            if number >= len(NUMBERS):
                raise RuleError(f"the recipe names the number _{number}, expected _0 to _{len(NUMBERS) - 1}")
            return self._e.like(self._node.input(0), NUMBERS[number])
        if sign in ("@", "$"):
            if (sign, text) not in self._made:
                raise RuleError(f"the recipe reads {sign}{text} before it computes it")
            return self._made[sign, text]
        return self._node.input(number)

    def _call(self, name: str, arguments: Sequence[int]) -> int:
        e = self._e
        if name in KINDS or name == "Count":
            if len(arguments) != 1:
                raise RuleError(f"the recipe calls {name} with {len(arguments)} arguments, expected 1")
            (x,) = arguments
            return reduced(e, name, x, range(e.rank(x)), to=e.dtype(x))
        if name not in FUNCTIONS:
            raise RuleError(f"the recipe calls {name}, which is not an elementwise function")
        count, add = FUNCTIONS[name]
        if len(arguments) != count:
            raise RuleError(f"the recipe calls {name} with {len(arguments)} arguments, expected {count}")
        found = add(e, *arguments)
        return e.cast(found, e.dtype(arguments[0])) if name.startswith("Cmp") else found


def _calculate(e: Emitter, node: Node) -> Sequence[int]:
    text = node.attributes.get("expr")
    if text is None:
        raise RuleError("has no attribute 'expr'")
    return _Recipe(e, node, text).results()


RULES: Mapping[str, Rule] = {"Calculate": _calculate}
