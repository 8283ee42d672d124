"""Values that `koordpolicy tune` may change, as documents mark them.

    metadata:
      annotations:
        koordpolicy.io/tunable: |
          parameters.cpuReclaim: 40% to 90% by 5%

One mark a line: a path below `spec`, then the least and the greatest value and the step between, in the unit in which the
value itself is written. The value stands in the same document, as a number; a parameter with its type is named without `value`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from koordpolicy.diagnostics import Diagnostics, Span
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.documents import Document
from koordpolicy.language.documents.edits import replaced

TUNABLE: Final = "koordpolicy.io/tunable"
CODE: Final = "KP420"
MOST_STEPS: Final = 100_000
"""Values of one mark at most: more cannot be tried, and a step as small as that is a slip."""

_FORM: Final = "write `parameters.NAME: 40% to 90% by 5%`"
_MARK: Final = re.compile(r"(?P<path>[^\s:]+)\s*:\s*(?P<low>\S+)\s+to\s+(?P<high>\S+)\s+by\s+(?P<step>\S+)")
_AMOUNT: Final = re.compile(r"(?P<number>-?\d{1,15}(?:\.\d{1,9})?)(?P<unit>[A-Za-zµ%]*)")

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Tunable:
    """A number in a document that may be changed: from `low` to `high` by `step`, in `unit`, which is a suffix.

    `name` is `Kind/document:path`, `span` where the value stands, `mark` where it is marked.
    """

    name: str
    document: Document
    path: Path
    value: Decimal
    low: Decimal
    high: Decimal
    step: Decimal
    unit: str
    span: Span
    mark: Span

    @property
    def steps(self) -> int:
        """The greatest step, counted from `low`, which is step 0."""
        return int((self.high - self.low) // self.step)

    def written(self, step: int) -> str:
        """The value at a step as policies write it."""
        return f"{_plain(self.low + step * self.step)}{self.unit}"

    @property
    def present(self) -> str:
        """The value that stands there, as policies write it."""
        return f"{_plain(self.value)}{self.unit}"

    @property
    def present_step(self) -> int | None:
        """The step at which the present value stands; None where it stands between steps, or beyond the range."""
        step, rest = divmod(self.value - self.low, self.step)
        return int(step) if not rest and 0 <= step <= self.steps else None

    def edit(self, step: int) -> tuple[Span, str]:
        """What is to stand in the file, and in place of what, so that the value is that of the step."""
        text = self.document.positions.text(self.path)
        if text is not None:
            edit = replaced(text, 0, len(text.value), self.written(step))
            if edit is not None:
                return edit
        return self.span, self.written(step)


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class MarkError(Exception):
    """A mark means nothing; `start` and `end` say where in the line, `help` what would."""

    def __init__(self, message: str, help: str, start: int = 0, end: int | None = None) -> None:
        super().__init__(message)
        self.help, self.start, self.end = help, start, end


def tunables_of(document: Document, found: Diagnostics) -> list[Tunable]:
    """The marks of a document; those that mean nothing are told of as KP420."""
    text = _annotation(document)
    made: dict[Path, Tunable] = {}
    for begin, line in _lines(text):
        at = ("metadata", "annotations", TUNABLE)
        mark = document.positions.text_span(at, begin, begin + len(line))
        try:
            one = _read(document, line, mark)
        except MarkError as error:
            end = len(line) if error.end is None else error.end
            place = document.positions.text_span(at, begin + error.start, begin + end)
            found.add(CODE, place, f"the mark `{line}` {error}", help=error.help)
            continue
        if one.path in made:
            found.add(
                CODE, mark, f"the mark `{line}` names what is marked already", help="leave one of them out"
            )
        made.setdefault(one.path, one)
    return list(made.values())


def _annotation(document: Document) -> str:
    metadata = document.data.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    text = annotations.get(TUNABLE) if isinstance(annotations, Mapping) else None
    return text if isinstance(text, str) else ""


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.splitlines(keepends=True):
        inner = line.strip()
        if inner and not inner.startswith("#"):
            yield at + line.index(inner), inner
        at += len(line)


def _read(document: Document, line: str, mark: Span) -> Tunable:
    matched = _MARK.fullmatch(line)
    if matched is None:
        raise MarkError("is none", _FORM)
    path = _path(document, matched)
    value, unit = _value(document, path, matched)
    amounts = []
    for part in ("low", "high", "step"):
        given = _AMOUNT.fullmatch(matched[part])
        if given is None:
            raise MarkError(
                f"says `{matched[part]}`, which is no number with a unit", _FORM, *matched.span(part)
            )
        if given["unit"] != unit:
            meant = f"`{given['number']}{unit}`"
            raise MarkError(
                f"says `{matched[part]}`, and the value is written in another unit",
                f"write {meant}, or the value in the unit of the mark", *matched.span(part),
            )  # fmt: skip
        amounts.append(Decimal(given["number"]))
    low, high, step = amounts
    if step <= 0:
        raise MarkError("has a step of nothing or less", "write a step above 0", *matched.span("step"))
    if low + step > high:
        raise MarkError(
            "has one value only",
            "let the range hold a step at least",
            matched.start("low"),
            matched.end("high"),
        )
    if (high - low) / step > MOST_STEPS:
        raise MarkError(f"has more than {MOST_STEPS:,} values", "write a greater step", *matched.span("step"))
    name = f"{document.kind}/{document.name}:{matched['path']}"
    span = document.positions.value(path)
    return Tunable(name, document, path, value, low, high, step, unit, span, mark)


def _path(document: Document, matched: re.Match[str]) -> Path:
    data: object = document.data.get("spec")
    path: list[str | int] = ["spec"]
    for word in matched["path"].split("."):
        step: str | int = int(word) if isinstance(data, list) and word.isdecimal() else word
        known = data if isinstance(data, Mapping) else dict(enumerate(data)) if isinstance(data, list) else {}
        if step not in known:
            close = nearest(word, [str(one) for one in known])
            help = f"did you mean `{close}`?" if close else "name a value that stands in this document"
            raise MarkError(f"names `{word}`, which is not there", help, *matched.span("path"))
        data = known[step]
        path.append(step)
    if len(path) == 3 and path[1] == "parameters" and isinstance(data, Mapping) and "value" in data:
        path.append("value")
    return tuple(path)


def _value(document: Document, path: Path, matched: re.Match[str]) -> tuple[Decimal, str]:
    positions = document.positions
    text = positions.text(path)
    said = positions.written(path) or (text.value if text is not None else "")
    given = _AMOUNT.fullmatch(said)
    if given is None:
        raise MarkError(
            "names what is no number in the text", "write the value there as a number with its unit, such as `60%`",
            *matched.span("path"),
        )  # fmt: skip
    if positions.origin(path) is not None:
        raise MarkError(
            "names an alias, whose value stands in several places", "write the value there itself",
            *matched.span("path"),
        )  # fmt: skip
    return Decimal(given["number"]), given["unit"]
