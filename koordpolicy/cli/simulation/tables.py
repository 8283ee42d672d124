"""Parts of a page of HTML: sections, tables, and what others wrote as text and nothing else."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from koordpolicy.diagnostics.escaping import safe

_CODE: Final = re.compile("`([^`]+)`")
_NUMBER: Final = re.compile(r"<?\d[\d,.:]*(?: \S+)*")
"""A number or a time with its units; the place of a rule, `3.yaml:4:36`, is none."""
_MOST_OF_NUMBER: Final = 16
"""Characters of a number with its unit; what is longer is a sentence that begins with one."""


def text(said: object) -> str:
    """What somebody else wrote, as text and nothing else."""
    return escape(safe(str(said)))


def prose(said: str) -> str:
    """The same, with names in `these` set as code."""
    return _CODE.sub(r"<code>\1</code>", text(said))


def section(title: str, *parts: str, beside: str = "") -> str:
    """Parts below a heading; empty where all of them are. `beside` stands below the heading, small."""
    inner = "".join(parts)
    if not inner:
        return ""
    note = f'<p class="beside">{prose(beside)}</p>' if beside else ""
    return f"<section><h2>{text(title)}</h2>{note}{inner}</section>"


def note(said: str) -> str:
    """A sentence of its own; empty for none."""
    return f"<p>{prose(said)}</p>" if said else ""


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows below their heads; empty where there are none. `title` is what a reader is told who comes to it by the keyboard."""
    if not rows:
        return ""
    numeric = [_numeric([row[at] for row in rows]) for at in range(len(heads))]
    top = "".join(
        f'<th scope="col"{kind}>{text(head)}</th>' if head else "<td></td>"
        for head, kind in zip(heads, numeric, strict=True)
    )
    lines = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{prose(cell)}</td>" for cell, kind in zip(row, numeric, strict=True))
        + "</tr>"
        for row in rows
    )
    return _scrolled(title, f"<thead><tr>{top}</tr></thead><tbody>{lines}</tbody>")


def labelled(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Labels with what is said beside them; empty where there are none."""
    lines = "".join(
        f'<tr><th scope="row">{text(label)}</th><td>{prose(said)}</td></tr>' for label, said in rows
    )
    return _scrolled(title, f"<tbody>{lines}</tbody>") if lines else ""


def _scrolled(title: str, inner: str) -> str:
    # What is wider than a small screen is moved to the side there, by the keyboard too.
    return f'<div class="wide" tabindex="0" role="region" aria-label="{text(title)}"><table>{inner}</table></div>'


def _numeric(cells: Sequence[str]) -> str:
    """The class of a column of numbers, which stand one below the other."""
    numbers = [cell for cell in cells if cell not in ("", "-")]
    are = all(_NUMBER.fullmatch(cell) and len(cell) < _MOST_OF_NUMBER for cell in numbers)
    return ' class="n"' if numbers and are else ""
