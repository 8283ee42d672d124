"""The few forms of Markdown that the manual uses."""

from collections.abc import Iterable, Mapping, Sequence


def code(text: str) -> str:
    """Inline code, whatever the text holds."""
    return f"``{text}``" if "`" in text else f"`{text}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, ending with a line break."""
    lines = [_row(head), "|" + "---|" * len(head)]
    lines += [_row(row) for row in rows]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"


def anchor(title: str) -> str:
    """The target that a heading has on its page."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def link_list(titles: Mapping[str, str]) -> str:
    """A list of links to pages by their titles, ending with a line break."""
    return "".join(f"- [{title}]({target})\n" for target, title in titles.items())
