"""Numbers as people read them, and bars."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from koordpolicy.diagnostics.escaping import one_line, safe

_TOGETHER = "\N{NO-BREAK SPACE}"
_FIGURE = re.compile(
    r"(?<=\d) (?=(?:%|d|h|min|s|ms|points|cores?)(?!\w))|(?<=\d (?:d|h)) (?=\d)|(?<=\d min) (?=\d)"
)
"""The spaces within figures such as `0.0 %` and `1 h 26 min`, which stand on one line."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
_STEPS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
_SIZES = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20))

BOLD, DIM, GREEN, YELLOW, CYAN = "1", "2", "32", "33", "36"


@dataclass(frozen=True, slots=True)
class Page:
    """Where lines go: so many columns, with or without colour."""

    width: int = 80
    colour: bool = False

    def paint(self, text: str, style: str) -> str:
        """The text in a style, where there is colour."""
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour and text else text

    def heading(self, text: str, beside: str = "") -> str:
        """The first line of a section; `beside` stands at the right, dim."""
        gap = " " * max(self.width - len(text) - len(beside), 2)
        return self.paint(text, BOLD) + (gap + self.paint(beside, DIM) if beside else "")

    def wrapped(self, text: str, indent: int, first: str = "") -> Iterator[str]:
        """Text in lines that fit, the first one after `first`, the others indented."""
        begin = first.ljust(indent) if first.strip() else first or " " * indent
        lines = textwrap.wrap(
            _FIGURE.sub(_TOGETHER, safe(text)), self.width, initial_indent=begin, subsequent_indent=" " * indent,
            break_long_words=True, break_on_hyphens=False,
        )  # fmt: skip
        yield from [line.replace(_TOGETHER, " ") for line in lines] or [begin.rstrip()]

    def short(self, text: str, width: int) -> str:
        """Text on one line, cut with an ellipsis where it is too long."""
        text = one_line(text)
        return text if len(text) <= width else text[: width - 1] + "…"


def bar(share: float, width: int) -> str:
    """A bar for a share from 0 to 1, exact to an eighth of a column; never empty for more than nothing."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if share > 0 and eighths == 0:
        eighths = 1
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def milliseconds(seconds: float) -> str:
    """`2.31 ms`."""
    return f"{1000 * seconds:,.2f} ms"


def percent(share: float) -> str:
    """`37.2 %`; less than a tenth, but more than nothing, is `<0.1 %`."""
    if 0 < share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.1f} %"


def points(share: float) -> str:
    """A difference of shares, without its sign, in percentage points: `3.1` of 0.031; what is less than a tenth is `<0.1`."""
    return percent(share).removesuffix(" %")


def waits_note(interval: float) -> str:
    """Why waits for a node come in steps; `interval` is the seconds between two reports of agents."""
    return (
        "waits come in steps: to decide takes no time here, and what agents report, such as batch resources,"
        f" changes every {length(interval)}"
    )


def length(seconds: float) -> str:
    """A length of time in its two largest units: `149 d 8 h`, `2 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds else "0 s"
    parts: list[str] = []
    rest = round(seconds)
    for unit, size in _STEPS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part)


def clock(seconds: float) -> str:
    """A time of the simulation: `14:05`, with the day before it after the first."""
    minutes = int(seconds // 60)
    day, minute = divmod(minutes, 1440)
    text = f"{minute // 60:02}:{minute % 60:02}"
    return f"day {day + 1}, {text}" if day else text


def size(amount: float) -> str:
    """Bytes: `512 Gi`."""
    for unit, one in _SIZES:
        if amount >= one:
            return f"{amount / one:,.1f} {unit}"
    return f"{amount:,.0f} bytes"
