"""Texts of lines, `name value`, as many kernel files have them."""

from collections.abc import Iterator, Mapping

from koordpolicy.linux.errors import Malformed

_MOST_LINES = 1 << 16


def lines(content: str) -> Iterator[list[str]]:
    """The words of each line that has any."""
    for line in content.split("\n")[:_MOST_LINES]:
        words = line.split()
        if words:
            yield words


def numbers(content: str) -> dict[str, int]:
    """The first number of each line by its name, a colon at its end left out; lines without one are passed over."""
    found = {}
    for name, *rest in lines(content):
        if rest and rest[0].isdecimal():
            found[name.removesuffix(":")] = int(rest[0])
    return found


def need(path: str, held: Mapping[str, int], name: str) -> int:
    """The number of that name. Raises `Malformed` where the file has none."""
    if name not in held:
        raise Malformed(path, f"there is no `{name}` in it")
    return held[name]
