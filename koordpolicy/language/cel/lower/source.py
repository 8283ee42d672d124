"""Python source under construction: nested blocks of lines."""

from collections.abc import Iterator


class Block:
    """Lines and deeper blocks, in order."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[str | Block] = []

    def line(self, text: str) -> None:
        """Append a line."""
        self.parts.append(text)

    def nest(self, inner: "Block") -> None:
        """Append a block one level deeper; an empty one becomes `pass`."""
        if inner.is_empty:
            inner.line("pass")
        self.parts.append(inner)

    def append(self, other: "Block") -> None:
        """Append another block's parts on this level."""
        self.parts.extend(other.parts)

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be written."""
        return not any(isinstance(part, str) or not part.is_empty for part in self.parts)

    def lines(self, level: int = 0) -> Iterator[str]:
        """The text, one space a level: generated code has no readers to please with four."""
        for part in self.parts:
            if isinstance(part, str):
                yield " " * level + part
            else:
                yield from part.lines(level + 1)


def one_line(*lines: str) -> Block:
    """A block of the given lines."""
    block = Block()
    for line in lines:
        block.line(line)
    return block
