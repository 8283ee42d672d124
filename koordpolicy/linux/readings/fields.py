"""Texts of lines, `name value`, as many kernel files have them."""

from collections.abc import Iterator, Mapping, Sequence

from koordpolicy.linux.errors import Malformed

_MOST_LINES = 1 << 16
_MOST_DIGITS = 40


def lines(content: str) -> Iterator[list[str]]:
    """The words of each line that has any."""
    for line in content.split("\n")[:_MOST_LINES]:
        words = line.split()
        if words:
            yield words


def is_number(word: str) -> bool:
    """Whether a word is a whole number that a kernel may write: none is longer than twice 64 bits."""
    return word.isdecimal() and len(word) <= _MOST_DIGITS


def numbers(content: str) -> dict[str, int]:
    """The first number of each line by its name, a colon at its end left out; lines without one are passed over."""
    found = {}
    for name, *rest in lines(content):
        if rest and is_number(rest[0]):
            found[name.removesuffix(":")] = int(rest[0])
    return found


def need(path: str, held: Mapping[str, int], name: str) -> int:
    """The number of that name. Raises `Malformed` where the file has none."""
    if name not in held:
        raise Malformed(path, f"there is no `{name}` in it")
    return held[name]


class NumberPicker:
    """Numbers of some names out of texts `name value` that stay alike: where a name stood last, it is looked for first."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(name.encode() for name in names)
        self._at: list[tuple[bytes, int]] = []
        self._last = 0

    def pick(self, content: bytes) -> list[int] | None:
        """The numbers in the order of the names; None where one of them is missing."""
        words = content.split()
        try:
            if self._at and len(words) > self._last and all(words[at - 1] == name for name, at in self._at):
                return [int(words[at]) for _name, at in self._at]
            # Names stand before their numbers: every other word, as lines have two.
            places = {name: index for index, name in enumerate(words[::2])}
            self._at = [(name, 2 * places[name] + 1) for name in self._names]
            self._last = max(at for _name, at in self._at)
            return [int(words[at]) for _name, at in self._at]
        except (KeyError, IndexError, ValueError):
            self._at = []
            return None
