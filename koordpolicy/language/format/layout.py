"""Write the lines of a document in their new places."""

from bisect import bisect_left

from koordpolicy.language.documents.tree import Place
from koordpolicy.language.format.plan import Head, Level, LinePlan, Unmovable

_ORDER = ("apiVersion", "kind", "metadata", "spec")


def layout(text: str, root: Place | None) -> str | None:
    """The text of one document in canonical layout; `None` where it should be left alone.

    `text` has no marker and no carriage returns. `root` is `None` where it holds comments only.
    """
    lines = text.split("\n")
    if root is None:
        return _text([_Group("", [line.strip(" ") for line in lines])])
    try:
        plan = LinePlan(text, root)
        return _text(_ordered(_groups(plan, lines)))
    except Unmovable:
        return None


class _Group:
    """The lines of one top-level key; the first group is what stands before all keys."""

    def __init__(self, key: str, lines: list[str] | None = None) -> None:
        self.key = key
        self.lines: list[str] = lines or []

    def add(self, line: str) -> None:
        # Two empty lines in a row say no more than one.
        if line or not self.lines or self.lines[-1]:
            self.lines.append(line)

    def add_content(self, line: str) -> None:
        self.lines.append(line)


def _groups(plan: LinePlan, lines: list[str]) -> list[_Group]:
    """The lines in their places, by top-level key; comments go with the key below them."""
    groups = [_Group("")]
    waiting: list[str] = []
    heads = sorted(plan.heads)
    for number, line in enumerate(lines):
        head, inner = plan.heads.get(number), plan.inner.get(number)
        if head is not None:
            if head.key is not None:
                _settle(waiting, groups[-1])
                groups.append(_Group(head.key))
            _take(waiting, groups[-1])
            groups[-1].add(head.text)
        elif inner is not None:
            _take(waiting, groups[-1])
            groups[-1].add_content(inner.moved(line))
        elif not line.strip(" "):
            waiting.append("")
        elif line.lstrip(" ").startswith("#"):
            column = _comment_column(plan, heads, number, line)
            waiting.append(" " * column + line.strip(" "))
        else:
            raise Unmovable
    end = _Group("end")
    _settle(waiting, groups[-1])
    _take(waiting, end)
    return [*groups, end]


def _settle(waiting: list[str], above: _Group) -> None:
    """Leave what does not belong to the key below: what stands deeper, or before all keys and apart."""
    if above.key:
        count = max((at + 1 for at, line in enumerate(waiting) if line.startswith(" ")), default=0)
    else:
        count = max((at + 1 for at, line in enumerate(waiting) if not line), default=len(waiting))
    for line in waiting[:count]:
        above.add(line)
    del waiting[:count]


def _take(waiting: list[str], group: _Group) -> None:
    for line in waiting:
        group.add(line)
    waiting.clear()


def _ordered(groups: list[_Group]) -> list[_Group]:
    """Head and end where they are, keys in canonical order, others after them as written."""
    first, *keys, last = groups
    places = {key: at for at, key in enumerate(_ORDER)}
    return [first, *sorted(keys, key=lambda group: places.get(group.key, len(_ORDER))), last]


def _text(groups: list[_Group]) -> str:
    """All lines, without empty ones at both ends and never two in a row between groups."""
    lines: list[str] = []
    for group in groups:
        for at, line in enumerate(group.lines):
            if line or at or (lines and lines[-1]):
                lines.append(line)
    text = "\n".join(lines)
    return text.strip("\n") + "\n" if text.strip() else ""


def _comment_column(plan: LinePlan, heads: list[int], number: int, line: str) -> int:
    """The column of a comment on its own line: that of the block it stood nearest to.

    The block below is preferred, then those above it and those of the line before. `heads` are the
    numbers of the lines that begin something, in order.
    """
    column = len(line) - len(line.lstrip(" "))
    at = bisect_left(heads, number)
    below = plan.heads[heads[at]] if at < len(heads) else None
    above = plan.heads[heads[at - 1]] if at else None
    levels = [*_levels(below), *_levels(above)]
    return min(levels, key=lambda level: abs(level[0] - column))[1] if levels else 0


def _levels(head: Head | None) -> tuple[Level, ...]:
    return head.levels if head else ()
