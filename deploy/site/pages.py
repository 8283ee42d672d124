"""Which files of the repository are pages, and where their links lead.

A link is a path in the repository, as hosts of repositories show it; an anchor is what they make of a heading.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
_PAGES = (
    "README.md",
    "CHANGELOG.md",
    "schemas/**/*.md",
    "examples/README.md",
    "examples/*/README.md",
    "deploy/**/*.md",
    "koordpolicy/README.md",
    "koordpolicy/scheduler/evaluation/README.md",
    "policies/README.md",
    "tests/README.md",
)
_SECTIONS = {"guide": "Guide", "manual": "Reference", "examples": "Examples", "deploy": "Operations"}
"""Where pages go that the navigation does not name, by a folder above them; all others go inside."""
_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#]*)(?P<anchor>#[^)\s]*)?(?=\))")
_HEADING = re.compile(r"^#{1,6} +(.*?) *#* *$", re.MULTILINE)
_MARKS = re.compile(r"\[([^\]]*)\]\([^)]*\)|[`*]|<[^>]*>")
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|//")


def pages(root: Path = REPOSITORY) -> list[Path]:
    """Every page, as a path below the root, in order."""
    found = {path.relative_to(root) for pattern in _PAGES for path in root.glob(pattern)}
    return sorted(path for path in found if "cli" not in path.parts)


def navigation(named: list[dict[str, Any]], known: list[Path]) -> list[dict[str, Any]]:
    """The navigation of mkdocs with the pages that it does not name, each at the end of its section."""
    said = {Path(path) for path in _paths(named)}
    made: list[dict[str, Any]] = [
        {title: list(below) if isinstance(below, list) else below for title, below in one.items()}
        for one in named
    ]
    sections = {title: below for one in made for title, below in one.items()}
    for page in known:
        if page not in said:
            sections[next((name for part, name in _SECTIONS.items() if part in page.parts), "Inside")].append(
                str(page)
            )
    return made


def _paths(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for below in entry.values() if isinstance(entry, dict) else entry:
            yield from _paths(below)


@dataclass(frozen=True, slots=True)
class Link:
    """A link from one page to a place in the repository. `start` and `end` are where its target stands in the text."""

    page: Path
    line: int
    path: str
    anchor: str
    start: int
    end: int

    def target(self, root: Path = REPOSITORY) -> Path:
        """The path below the root that is meant, of a file or folder; it need not be there. Raises ValueError outside of it."""
        whole = root / self.page
        meant = whole if not self.path else (whole.parent / self.path).resolve()
        return meant.relative_to(root)


def prose(text: str) -> str:
    """The text with blanks in place of code, so that places stay where they are."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    return _CODE.sub(blank, _FENCE.sub(blank, text))


def links(page: Path, text: str) -> Iterator[Link]:
    """The links of a page that lead to the repository itself."""
    for found in _LINK.finditer(prose(text)):
        if not _OUTSIDE.match(found["path"]):
            line = text.count("\n", 0, found.start()) + 1
            anchor = (found["anchor"] or "").removeprefix("#")
            yield Link(page, line, found["path"], anchor, *found.span())


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings: lower case, letters and digits, blanks as hyphens; the second of a name ends in -1."""
    taken: dict[str, int] = {}
    found = set()
    without = _FENCE.sub("", text)
    for heading in _HEADING.finditer(without):
        words = _MARKS.sub(lambda mark: mark[1] or "", heading[1])
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(f"{name}-{taken[name]}" if name in taken else name)
        taken[name] = taken.get(name, 0) + 1
    return found


def broken(root: Path = REPOSITORY) -> list[str]:
    """Each link that leads nowhere, with its place."""
    texts = {page: (root / page).read_text(encoding="utf-8") for page in pages(root)}
    made = {page: anchors(text) for page, text in texts.items()}
    found = []
    for page, text in texts.items():
        for link in links(page, text):
            place = f"{page}:{link.line}: `{link.path}{'#' if link.anchor else ''}{link.anchor}`"
            try:
                target = link.target(root)
            except ValueError:
                found.append(f"{place} leads out of the repository")
                continue
            if not (root / target).exists():
                found.append(f"{place} leads nowhere")
            elif link.anchor and link.anchor not in made.get(target, set()):
                found.append(f"{place}: {target} has no such heading")
    return found
