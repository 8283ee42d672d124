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
    """Numbers of some names out of texts of lines `name value`.

    Such texts stay alike from reading to reading: only the lines from the first to the last that is wanted are looked at again.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(name.encode() for name in names)
        self._begin = b""
        """What the first line that is wanted begins with."""
        self._between: list[bytes] = []
        """The names of the lines from the first to the last that is wanted, in their order."""
        self._at: list[int] = []
        """Where in these lines the numbers are."""
        self._words = 0

    def pick(self, content: bytes) -> list[int] | None:
        """The numbers in the order of the names; None where one of them is missing."""
        if self._at:
            begin = 0 if content.startswith(self._begin) else content.find(b"\n" + self._begin)
            if begin >= 0:
                words = content[begin:].split(None, self._words)
                if words[: self._words : 2] == self._between:
                    try:
                        return [int(words[at]) for at in self._at]
                    except (IndexError, ValueError):
                        pass  # read as a whole it tells whether it is there at all
        return self._learn(content)

    def _learn(self, content: bytes) -> list[int] | None:
        words = content.split()
        # Names stand before their numbers: every other word, as lines have two.
        places = {name: 2 * index for index, name in enumerate(words[::2])}
        try:
            at = [places[name] for name in self._names]
            found = [int(words[place + 1]) for place in at]
        except (KeyError, IndexError, ValueError):
            self._at = []
            return None
        first, last = min(at), max(at)
        self._begin = words[first] + b" "
        self._words = last - first + 2
        self._between = words[first : last + 2 : 2]
        self._at = [place - first + 1 for place in at]
        return found
