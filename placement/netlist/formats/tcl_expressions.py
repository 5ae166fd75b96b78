"""Evaluates the expressions of Tcl: numbers, text, comparisons, `&&`, `||`, `?:` and functions.

Integers divide as in Tcl: `7 / 2` is 3. Operands that `&&`, `||` and `?:` do not need are not evaluated.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

Value = Any  # a string, an object that a command found, or a list of values
Number = int | float
VARIABLE = re.compile(r"\$(?:\{([^}]*)\}|((?:::)?\w+(?:::\w+)*)(\([^)]*\))?)")
_TOKEN = re.compile(r"\|\||&&|[=!<>]=|[-+*/%<>!?:(),]|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[A-Za-z_]\w*")
_LEVELS = (("||",), ("&&",), ("==", "!=", "eq", "ne"), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%"))
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Number]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "%": operator.mod,
}  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "abs": abs, "int": int, "round": lambda x: math.floor(x + 0.5), "double": float, "max": max, "min": min,
    "pow": lambda x, y: float(x) ** y, "sqrt": math.sqrt, "log": math.log, "log10": math.log10, "exp": math.exp,
    "ceil": lambda x: float(math.ceil(x)), "floor": lambda x: float(math.floor(x)), "fmod": math.fmod,
}  # fmt: skip
_LARGEST = 2**63  # maximum integer of Tcl 8.4
_ATOM, _REPEATED = r"(?:\\.|\[\^?\]?[^\]]*\]|[^\\()\[\]|*+?{}])", r"(?:[*+?]|\{\d*,?\d*\})[?+]?"
_NESTED = re.compile(rf"\((?:\?:)?(?:{_ATOM}{_REPEATED}\|?)+\)(?:[*+]|\{{\d*,)")  # as in `(a+)+` or `(a*|b?)*`
_TRUTH = {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}


def as_text(value: Value) -> str:
    """A value as Tcl would print it; an object is its name."""
    if isinstance(value, list):
        return " ".join(f"{{{text}}}" if not text or " " in text else text for text in map(as_text, value))
    return repr(value) if isinstance(value, float) else str(getattr(value, "name", value))


def regular_expression(text: str, flags: int = 0) -> re.Pattern[str]:
    """Compiles a regular expression.

    Raises re.error if it is not valid, or if it repeats a group of repetitions: the time to match it may be
    exponential.
    """
    if found := _NESTED.search(text):
        raise re.error(f"{found[0]} repeats repetitions")
    return re.compile(text, flags)


def evaluate(text: str, substituted: Callable[[str], Value]) -> Value:
    """The value of an expression: an int, a float or text.

    Args:
        text: the expression.
        substituted: maps a word that begins with `$`, `[` or `"` to its value.

    Raises:
        ValueError: the text is not a valid expression, or an operand is not a number.
    """
    return _Expression(text, substituted).result()


def is_true(value: Value) -> bool:
    """Whether a condition holds; raises ValueError if it is neither a number nor a word such as `true`.

    The value of an unsupported command, which is empty, is false.
    """
    text = as_text(value).strip().lower()
    return bool(_TRUTH[text] if text in _TRUTH else text and _number(value))


def closing(text: str, at: int) -> int | None:
    """The position of the character that closes the bracket, brace or quote at `at`; None if there is none."""
    opening = text[at]
    end = {"{": "}", "[": "]", '"': '"'}[opening]
    depth, place = 0, at
    while place < len(text):
        letter = text[place]
        if letter == "\\":
            place += 2
            continue
        if opening == '"':
            if letter == '"' and place > at:
                return place
            if letter == "[":
                place = closing(text, place) or place  # A command may contain quotes.
        elif letter == opening:
            depth += 1
        elif letter == end:
            depth -= 1
            if depth == 0:
                return place
        place += 1
    return None


class _Expression:
    """A recursive descent over the levels of precedence; `runs` is false for operands that are not evaluated."""

    def __init__(self, text: str, substituted: Callable[[str], Value]) -> None:
        self._text, self._substituted, self._at = text, substituted, 0

    def result(self) -> Value:
        value = self._choice(True)
        if self._token():
            raise ValueError("an operator is missing")
        return value

    def _choice(self, runs: bool) -> Value:
        condition = self._binary(0, runs)
        if not self._accept("?"):
            return condition
        first = runs and is_true(condition)
        then = self._choice(first)
        if not self._accept(":"):
            raise ValueError("':' is missing")
        otherwise = self._choice(runs and not first)
        return then if first else otherwise

    def _binary(self, level: int, runs: bool) -> Value:
        if level == len(_LEVELS):
            return self._unary(runs)
        left = self._binary(level + 1, runs)
        while (name := self._token()) in _LEVELS[level]:
            self._at += len(name)
            if level < 2:
                decided = runs and is_true(left) == (name == "||")
                right = self._binary(level + 1, runs and not decided)
                left = int(is_true(left) if decided else is_true(right)) if runs else 0
            else:
                right = self._binary(level + 1, runs)
                left = _applied(name, left, right) if runs else 0
        return left

    def _unary(self, runs: bool) -> Value:
        for sign in ("-", "+", "!"):
            if self._accept(sign):
                value = self._unary(runs)
                if not runs:
                    return 0
                return int(not is_true(value)) if sign == "!" else _number(value) * (-1 if sign == "-" else 1)
        return self._operand(runs)

    def _operand(self, runs: bool) -> Value:
        token = self._token()
        letter = self._text[self._at : self._at + 1]
        if self._accept("("):
            value = self._choice(runs)
            if not self._accept(")"):
                raise ValueError("')' is missing")
            return value
        if letter in ("$", "[", '"', "{") and letter:
            variable = VARIABLE.match(self._text, self._at)
            end = variable.end() if variable else None
            if letter != "$" and (last := closing(self._text, self._at)) is not None:
                end = last + 1
            if end is None:
                raise ValueError(f"{letter} is not closed")
            word, self._at = self._text[self._at : end], end
            return (word[1:-1] if letter == "{" else self._substituted(word)) if runs else 0
        self._at += len(token)
        if re.match(r"[\d.]", token):
            return _number(token)
        if token.lower() in _TRUTH:
            return token
        if token in _FUNCTIONS and self._accept("("):
            arguments = [self._choice(runs)]
            while self._accept(","):
                arguments.append(self._choice(runs))
            if not self._accept(")"):
                raise ValueError("')' is missing")
            return _FUNCTIONS[token](*map(_number, arguments)) if runs else 0
        raise ValueError("an operand is missing")

    def _token(self) -> str:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        found = _TOKEN.match(self._text, self._at)
        return found[0] if found else self._text[self._at : self._at + 1]

    def _accept(self, word: str) -> bool:
        if self._token() != word:
            return False
        self._at += len(word)
        return True


def _applied(name: str, left: Value, right: Value) -> Number:
    if name in ("eq", "ne"):
        return int((as_text(left) == as_text(right)) == (name == "eq"))
    if name in _COMPARISONS:
        try:
            return int(_COMPARISONS[name](_number(left), _number(right)))
        except ValueError:
            return int(_COMPARISONS[name](as_text(left), as_text(right)))
    one, other = _number(left), _number(right)
    if name == "/":
        return one // other if isinstance(one, int) and isinstance(other, int) else one / other
    result = _ARITHMETIC[name](one, other)
    if abs(result) > _LARGEST and isinstance(result, int):
        raise ValueError(f"must be at most {_LARGEST}")
    return result


def _number(value: Value) -> Number:
    if isinstance(value, int | float):
        return value
    text = as_text(value).strip()
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
