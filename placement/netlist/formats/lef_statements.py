"""The words of a LEF file, as statements that end in `;` and blocks that end in `END`."""

from __future__ import annotations

import contextlib
import math
import re

from placement.netlist.errors import DesignError

_WORD = re.compile(r'"[^"]*"|;|#[^\n]*|[^\s;"][^\s;]*|"')


class LefWords:
    """The words of one file, read one after another; complaints name the file and the line."""

    def __init__(self, path: object, text: str) -> None:
        self.path = path
        self.text = text
        # Comments are kept out here; where a word stands is found again only for a message.
        self.words = [word for word in _WORD.findall(text) if word[0] != "#"]
        self.ends = [word for word in ("END", "end", "End") if word in self.words]
        self.at = 0

    def error(self, message: str, at: int | None = None) -> DesignError:
        """A complaint about word number `at`, by default the one read last."""
        wanted = max(0, (self.at - 1) if at is None else at)
        number = -1
        for found in _WORD.finditer(self.text):
            number += found[0][0] != "#"
            if number == wanted:
                return DesignError.at(self.path, self.text.count("\n", 0, found.start()) + 1, message)
        return DesignError.at(self.path, self.text.count("\n") + 1, message)

    def next(self) -> str | None:
        """The next word, None at the end."""
        if self.at == len(self.words):
            return None
        self.at += 1
        return self.words[self.at - 1]

    def need(self, what: str) -> str:
        """The next word, which must be there."""
        word = self.next()
        if word is None:
            raise self.error(f"the file ends where {what} must follow; it seems to be cut", self.at)
        if word == '"':
            raise self.error("the string that begins here has no closing quote")
        return word

    def name(self, what: str) -> str:
        """The next word, which must be no `;`."""
        word = self.need(what)
        if word == ";":
            raise self.error(f"expected {what}, found ';'")
        return word

    def statement(self) -> list[str]:
        """The words up to the next `;`, which is passed."""
        try:
            end = self.words.index(";", self.at)
        except ValueError:
            self.at = len(self.words)
            raise self.error("the file ends within a statement; it seems to be cut", self.at) from None
        found = self.words[self.at : end]
        if '"' in found:
            raise self.error("the string that begins here has no closing quote", self.at + found.index('"'))
        self.at = end + 1
        return found

    def number(self, word: str, what: str) -> float:
        """A finite number."""
        try:
            value = float(word) if "_" not in word else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(f"expected {what}, a number, found {word[:40]!r}")
        return value

    def numbers(self, words: list[str], what: str, *, count: int | None = None) -> list[float]:
        """Finite numbers, `count` of them where it is given; brackets between them are passed."""
        found = [self.number(word, what) for word in words if word not in ("(", ")")]
        if count not in (None, len(found)):
            raise self.error(f"{what}: expected {count} number{'s' * (count != 1)}, found {len(found)}")
        return found

    def is_end(self, what: str) -> bool:
        """Whether the next word, which must be there and is passed, is END; `what` is said where there is none."""
        return self.need(what).upper() == "END"

    def skip_block(self, name: str) -> None:
        """Moves past `END name`."""
        begin = self.at
        while (at := self._next_end()) is not None:
            self.at = at + 1
            if self.at < len(self.words) and name in (self.words[self.at], self.words[self.at].upper()):
                self.at += 1
                return
        raise self.error(f"the block {name} that begins here has no 'END {name}'", begin - 1)

    def _next_end(self) -> int | None:
        """Where the next END stands, in capital letters or not; None: nowhere."""
        found = []
        for word in self.ends:
            with contextlib.suppress(ValueError):
                found.append(self.words.index(word, self.at))
        return min(found, default=None)
