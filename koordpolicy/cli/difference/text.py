"""A difference for a terminal: each change on a line of its own, why and where below it."""

import textwrap
from collections.abc import Iterator

from koordpolicy.cli.counted import counted
from koordpolicy.cli.difference.shown import (
    MARKS,
    MOST_FAILED,
    PROVED,
    OnCluster,
    ShownDifference,
    admission_kind_text,
    admission_text,
    applies_to,
    failed_text,
    failed_title,
    from_when,
    headline,
    in_order,
    outcome,
    same_text,
    telling,
    texts,
    untold,
    untold_text,
    without_example,
)
from koordpolicy.diagnostics.escaping import safe
from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.diff import Affected, DecisionChange, Edit, Effect, Example, Open, Told
from koordpolicy.graph.diff.words import pair_text

_BOLD, _DIM, _RED, _GREEN, _YELLOW = "1", "2", "31", "32", "33"
_COLOURS = {"+": _GREEN, "-": _RED, "~": _YELLOW}
_MOST_FACTS = 6
_MOST_LINES = 6


def render_text(shown: ShownDifference) -> str:
    """The difference, then on whom it falls."""
    told = "\n".join(_Text(shown).lines()) + "\n"
    return told if shown.effect is None else f"{told}\n{shown.effect.text}"


class _Text:
    """A difference on its way to lines."""

    def __init__(self, shown: ShownDifference) -> None:
        self.shown = shown

    def lines(self) -> Iterator[str]:
        difference = self.shown.difference
        yield from self._wrapped(
            f"{headline(difference)} from {self.shown.old} to {self.shown.new}", 0, style=_BOLD
        )
        yield from self._failed()
        for change in difference.decisions:
            yield ""
            yield from self._decision(change)
        for one in difference.later:
            yield ""
            yield self._paint(f"{from_when(one)}, when exceptions begin or end", _BOLD)
            for change in one.decisions:
                yield ""
                yield from self._decision(change)
            for left in one.open:
                yield ""
                yield from self._left(left)
        if difference.settings:
            yield ""
            yield self._paint("settings", _BOLD)
            for setting in difference.settings:
                yield from self._wrapped(f"~ {setting.document} {setting.path}", 2)
                yield from self._wrapped(f"{setting.old or 'absent'} -> {setting.new or 'absent'}", 6)
                yield self._paint(f"      {place(setting.span)}", _DIM)
        if difference.documents:
            yield ""
            yield self._paint("documents", _BOLD)
            for document in difference.documents:
                says = f" ({document.says})" if document.says else ""
                mark = MARKS[document.how]
                yield (
                    f"  {self._paint(mark, _COLOURS[mark])} {safe(document.document)}{safe(says)}  "
                    + self._paint(safe(document.span.file), _DIM)
                )
        if difference.renamed:
            yield ""
            for before, after in difference.renamed:
                yield from self._wrapped(f"only renamed: {before} -> {after}", 0)
        if difference.equal:
            yield ""
            yield from self._wrapped(f"{PROVED}: " + ", ".join(difference.equal), 0)
        for left in difference.open:
            yield ""
            yield from self._left(left)
        if self.shown.cluster is not None:
            yield ""
            yield from self._cluster(self.shown.cluster)

    def _failed(self) -> Iterator[str]:
        cluster = self.shown.cluster
        if cluster is None or not cluster.failed:
            return
        yield ""
        yield from self._wrapped(failed_title(cluster), 0, style=_YELLOW)
        for one in cluster.failed[:MOST_FAILED]:
            yield from self._wrapped(failed_text(one, self.shown), 4, "  ")
        if len(cluster.failed) > MOST_FAILED:
            yield f"  and {len(cluster.failed) - MOST_FAILED} other rules (see --output json)"

    def _left(self, left: Open) -> Iterator[str]:
        yield from self._wrapped(f"{left.decision}: gave up: {left.why}", 2, "", _YELLOW)
        for edit in left.edits:
            yield from self._edit(edit)

    def _decision(self, change: DecisionChange) -> Iterator[str]:
        yield self._paint(safe(change.decision), _BOLD)
        for edit in change.edits:
            yield from self._edit(edit)
        if not change.edits:
            yield from self._wrapped(f"because of {change.cause}", 2)
        for effect in change.effects:
            yield from self._effect(effect, alone=not change.edits)

    def _edit(self, edit: Edit) -> Iterator[str]:
        mark = MARKS[edit.how]
        front = f"{applies_to(edit)}: "
        if edit.example is None:
            text = front + without_example(edit)
        else:
            text = front + outcome(edit.example, pair_text(edit.example.old, edit.example.new))
        yield from self._wrapped(text, 4, f"  {self._paint(mark, _COLOURS[mark])} ")
        for sign, line in texts(edit):
            yield from self._expression(sign, line)
        if edit.example is not None:
            yield from self._facts(edit.example)
        yield from self._also(edit.also)
        yield self._paint(f"      {safe(place(edit.span))}", _DIM)

    def _effect(self, effect: Effect, *, alone: bool) -> Iterator[str]:
        name = "" if alone else f"so {effect.decision}: "
        text = name + outcome(effect.example, pair_text(effect.example.old, effect.example.new))
        yield from self._wrapped(text, 4)
        yield from self._facts(effect.example)
        yield from self._also(effect.also)

    def _also(self, also: Example | None) -> Iterator[str]:
        if also is not None:
            yield from self._wrapped("and " + outcome(also, pair_text(also.old, also.new)), 4)
            yield from self._facts(also)

    def _expression(self, sign: str, text: str) -> Iterator[str]:
        lines = textwrap.wrap(safe(text), self.shown.width - 8, break_long_words=False) or [""]
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES - 1 :] = ["..."]
        for number, line in enumerate(lines):
            yield self._paint(f"      {sign if number == 0 else ' '} {line}", _COLOURS[sign])

    def _facts(self, example: Example) -> Iterator[str]:
        """The figures of the example, as far as they are single ones."""
        facts = telling(example)
        if facts:
            more = f", and {len(facts) - _MOST_FACTS} more" if len(facts) > _MOST_FACTS else ""
            text = "with " + ", ".join(facts[:_MOST_FACTS]) + more
            for line in textwrap.wrap(
                safe(text), self.shown.width, initial_indent=" " * 6, subsequent_indent=" " * 6
            ):
                yield self._paint(line, _DIM)

    def _cluster(self, cluster: OnCluster) -> Iterator[str]:
        yield self._paint(
            f"on {safe(cluster.file)}: {counted(cluster.nodes, 'node')}, {counted(cluster.pods, 'pod')}, {cluster.taken}",
            _BOLD,
        )
        yield from self._all_affected(cluster.affected)
        if cluster.admission is not None:
            yield from self._wrapped(admission_text(cluster.admission), 4, "  ")
            for kind in cluster.admission.kinds:
                yield from self._wrapped(admission_kind_text(kind), 10, "      ")
        for later in cluster.later:
            if later.affected:
                yield f"  {from_when(later)}, on the same nodes and pods"
                yield from self._all_affected(later.affected)

    def _all_affected(self, found: tuple[Affected, ...]) -> Iterator[str]:
        for one in in_order(found):
            yield from self._affected(one)
        for one in untold(found):
            yield from self._wrapped(f"{one.decision}: {untold_text(one)}", 4, "  ", _YELLOW)
        same = same_text(found)
        if same:
            yield f"  {same}"

    def _affected(self, one: Affected) -> Iterator[str]:
        if one.things == "cluster":
            [(shift, _, _)] = one.kinds
            yield from self._wrapped(f"{one.decision}: {pair_text(shift.old, shift.new)}", 4, "  ")
            return
        yield from self._wrapped(
            f"{one.decision}: {one.changed:,} of {one.total:,} {one.things} change", 4, "  "
        )
        if one.old is not None and one.new is not None:
            yield from self._wrapped(f"together  {pair_text(*_sums(one))}", 16, "      ")
            for number, shift in enumerate(one.largest):
                front = "most      " if number == 0 else " " * 10
                yield from self._wrapped(
                    f"{shift.name}  {pair_text(shift.old, shift.new)}", 16, f"      {front}"
                )
        else:
            for shift, count, names in one.kinds:
                more = ", ..." if count > len(names) else ""
                yield from self._wrapped(
                    f"{pair_text(shift.old, shift.new)}: {count:,}, as {', '.join(names)}{more}", 10, "      "
                )
        if one.failing:
            yield from self._wrapped(untold_text(one), 10, "      ")

    def _wrapped(self, text: str, indent: int, front: str | None = None, style: str = "") -> Iterator[str]:
        """Lines within the width; `front`, as wide as its letters without colour, stands before the first."""
        lead = " " * indent if front is None else front
        lines = textwrap.wrap(
            safe(text), self.shown.width - indent, break_long_words=False, break_on_hyphens=False
        )
        for number, line in enumerate(lines or [""]):
            yield (lead if number == 0 else " " * indent) + self._paint(line, style)

    def _paint(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if style and self.shown.colour else text


def _sums(one: Affected) -> tuple[Told, Told]:
    return Told(one.type, one.old), Told(one.type, one.new)
