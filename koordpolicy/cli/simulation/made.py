"""How a report came about, so that whoever reads it can have the same again: program, command line, seeds."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from koordpolicy import __version__
from koordpolicy.cli import markup
from koordpolicy.cli.simulation.words import DIM, Page

_PROGRAM: Final = "koordpolicy"
_TO_ESCAPE: Final = re.compile(r"[\\']|[^ -~]")
_SHORT_DIGEST: Final = 12


@dataclass(frozen=True, slots=True)
class Made:
    """The words that the program was called with, and the seeds of what is told."""

    words: tuple[str, ...]
    seeds: tuple[int, ...]

    @property
    def command(self) -> str:
        """The command line, on one line, as a shell takes it."""
        return " ".join(_commanded(self.words))

    def data(self) -> dict[str, Any]:
        """The same as data."""
        return {_PROGRAM: __version__, "command": self.command, "seeds": list(self.seeds)}

    def lines(self, page: Page, policies: str = "") -> Iterator[str]:
        """The same for a terminal; the command can be copied from there, and is not broken within a word."""
        beside = f"; {policies}" if policies else ""
        for line in page.wrapped(f"{self._by}{beside}; again by", 2):
            yield page.paint(line, DIM)
        line = " "
        for word in _commanded(self.words):
            if line.strip() and len(line) + len(word) + len(" \\") >= page.width:
                yield page.paint(f"{line} \\", DIM)
                line = "   "
            line += f" {word}"
        yield page.paint(line, DIM)

    def markdown(self, policies: str = "") -> str:
        """The same as a line of Markdown; `policies` is Markdown already."""
        beside = f"; {policies}" if policies else ""
        return f"{self._by[0].upper()}{self._by[1:]}{beside}. Again by {markup.code(self.command)}"

    def text(self) -> str:
        """The same as a sentence of plain text."""
        return f"{self._by}; again by {self.command}"

    def html(self) -> str:
        """The same as a line of HTML."""
        return f"{self._by[0].upper()}{self._by[1:]}. Again by <code>{escape(self.command)}</code>"

    @property
    def _by(self) -> str:
        seeds = f" with {_seeds_text(self.seeds)}" if self.seeds else ""
        return f"made by {_PROGRAM} {__version__}{seeds}"


def _seeds_text(seeds: Sequence[int]) -> str:
    """`seed 4`, `seeds 1 to 3`, of seeds that follow each other."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def short_digest(digest: str) -> str:
    """As much of a digest of policies as tells them apart."""
    return digest[:_SHORT_DIGEST]


def _commanded(words: Sequence[str]) -> list[str]:
    return [_PROGRAM, *map(_quoted, words)]


def _quoted(word: str) -> str:
    r"""A word as a shell takes it, on one line and in characters that everybody sees: `a`, `'a b'`, `$'a\nb'`, which Bash and zsh know."""
    if all(" " <= one <= "~" for one in word):
        return shlex.quote(word)
    if word.isprintable():
        return f"'{word}'" if "'" not in word else _escaped(word)
    return _escaped(word)


def _escaped(word: str) -> str:
    def shown(found: re.Match[str]) -> str:
        one = found.group()
        if one in "\\'":
            return f"\\{one}"
        if one.isprintable():
            return one
        return "".join(f"\\x{byte:02x}" for byte in one.encode("utf-8", "surrogateescape"))

    return f"$'{_TO_ESCAPE.sub(shown, word)}'"
