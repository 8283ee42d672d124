"""Lines of text with labels, wrapped to a width."""

import textwrap
from collections.abc import Iterable, Iterator

from koordpolicy.diagnostics import Span
from koordpolicy.diagnostics.escaping import safe


def place(span: Span) -> str:
    """`file:line:column`."""
    return f"{span.file}:{span.start.line}:{span.start.column}"


def paragraph(text: str, width: int, indent: int = 0, hanging: int = 0) -> list[str]:
    """The text in lines; words are never torn, since they may be names or paths."""
    return textwrap.wrap(
        safe(" ".join(text.split())),
        max(width, indent + 20),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )


def expression(text: str, width: int, indent: int) -> Iterator[str]:
    """An expression as its author broke it into lines where these fit, else broken at spaces."""
    bar = " " * indent + "| "
    for line in textwrap.dedent(text).strip("\n").split("\n"):
        inner = len(line) - len(line.lstrip(" "))
        if len(bar) + len(line) <= width:
            yield bar + safe(line)
        else:
            yield from (bar + part for part in paragraph(line, width - len(bar), inner, 2))


def labelled(label: str, text: str, width: int, indent: int = 2, column: int = 13) -> Iterator[str]:
    """`label        text`, the text wrapped beside its label."""
    front = " " * indent + f"{label:<{column - indent}}"
    for line in paragraph(text, width - column) or [""]:
        yield (front + line).rstrip()
        front = " " * column


def rows(
    pairs: Iterable[tuple[str, str]], width: int, indent: int = 2, gap: int = 2, most: int = 44
) -> Iterator[str]:
    """Two columns; where the right one does not fit beside the left one, it stands below it."""
    known = list(pairs)
    fitting = [len(left) for left, _ in known if len(left) <= most]
    column = indent + max(fitting, default=0) + gap
    for left, right in known:
        if not right:
            yield " " * indent + safe(left)
        elif indent + len(left) + gap <= column and column + len(right) <= width:
            yield f"{' ' * indent}{safe(left):<{column - indent}}{safe(right)}"
        elif indent + len(left) + gap <= column and width - column >= 30:
            wrapped = paragraph(right, width - column)
            yield f"{' ' * indent}{safe(left):<{column - indent}}{wrapped[0]}"
            yield from (" " * column + line for line in wrapped[1:])
        else:
            yield " " * indent + safe(left)
            yield from paragraph(right, width, indent + 4)
