"""A difference as a comment on a pull request: a table that says it all, expressions folded away."""

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
    same_text,
    telling,
    texts,
    untold,
    untold_text,
    without_example,
)
from koordpolicy.cli.markup import plain, ticked, within_html
from koordpolicy.diagnostics import Span
from koordpolicy.graph.diff import Affected, DecisionChange, Edit, Example, Open, Told
from koordpolicy.graph.diff.words import distance, moves_text, pair_text, told_text

_MOST_ROWS = 100
_LONGEST_CELL = 120
_LONGEST_FINDINGS = 20_000
"""Characters: what somebody reads in a comment, and less than a comment may have."""


def render_markdown(shown: ShownDifference) -> str:
    """The difference in Markdown as GitHub and GitLab show it."""
    return "\n".join(_lines(shown)) + "\n"


def render_refused(what: str, findings: str) -> str:
    """That there is no difference to show, since a side's policies are not taken, and why: `findings` has several lines."""
    text = findings.strip("\n")
    cut = len(text) > _LONGEST_FINDINGS
    if cut:
        text = text[
            : text.rfind("\n", 0, _LONGEST_FINDINGS)
            if "\n" in text[:_LONGEST_FINDINGS]
            else _LONGEST_FINDINGS
        ]
    title = _plain(what)
    lines = (
        f"**Refused: {title}**",
        "",
        "```text",
        text.replace("```", "'''"),
        "```",
        *(("", "More is found: `koordpolicy check` tells all of it.") if cut else ()),
    )
    return "\n".join(lines) + "\n"


def _lines(shown: ShownDifference) -> Iterator[str]:
    difference = shown.difference
    words = headline(difference)
    yield f"**{words[0].upper()}{words[1:]}** from {_code(shown.old)} to {_code(shown.new)}"
    if shown.cluster is not None and shown.cluster.failed:
        yield ""
        yield f"**{_plain(failed_title(shown.cluster)).capitalize()}**"
        yield ""
        for failed in shown.cluster.failed[:MOST_FAILED]:
            yield f"- {plain(failed_text(failed, shown))}"
        if len(shown.cluster.failed) > MOST_FAILED:
            yield f"- and {len(shown.cluster.failed) - MOST_FAILED} other rules"
    yield from _decisions(difference.decisions)
    for one in difference.later:
        yield ""
        yield f"**{from_when(one).capitalize()}, when exceptions begin or end**"
        yield from _decisions(one.decisions)
        yield from _open(one.open)
    if difference.settings:
        yield ""
        yield "| setting | before | after | where |"
        yield "|---|---|---|---|"
        for setting in difference.settings:
            yield _row(
                _code(f"{setting.document} {setting.path}"),
                _value(setting.old),
                _value(setting.new),
                _place(setting.span),
            )
    if difference.documents:
        yield ""
        for document in difference.documents:
            says = f" ({_plain(document.says)})" if document.says else ""
            yield f"- {document.how} {_code(document.document)}{says}, {_code(document.span.file)}"
    if difference.renamed:
        yield ""
        yield "Only renamed: " + ", ".join(
            f"{_code(before)} to {_code(after)}" for before, after in difference.renamed
        )
    if difference.equal:
        yield ""
        yield f"{PROVED[0].upper()}{PROVED[1:]}: " + ", ".join(map(_code, difference.equal))
    yield from _open(difference.open)
    yield from _details(shown)
    if shown.cluster is not None:
        yield from _cluster(shown.cluster)
    if shown.effect is not None:
        yield ""
        yield shown.effect.markdown.rstrip("\n")


def _decisions(changes: tuple[DecisionChange, ...]) -> Iterator[str]:
    """A table of changes, where there are any."""
    if changes:
        yield ""
        yield "| | decision | applies to | before | after | where |"
        yield "|---|---|---|---|---|---|"
        rows = [row for change in changes for row in _rows(change)]
        yield from rows[:_MOST_ROWS]
        if len(rows) > _MOST_ROWS:
            yield ""
            yield f"and {len(rows) - _MOST_ROWS:,} more"


def _open(found: tuple[Open, ...]) -> Iterator[str]:
    """What it is not known of whether it changes."""
    if found:
        yield ""
        for left in found:
            yield f"- {_code(left.decision)}: **gave up**: {_plain(left.why)}"


def _rows(change: DecisionChange) -> Iterator[str]:
    name = _code(change.decision)
    for edit in change.edits:
        yield _row(MARKS[edit.how], name, _scope(edit), *_pair(edit), _place(edit.span))
        if edit.also is not None:
            yield _also(edit.also)
        name = ""
    for effect in change.effects:
        shown = name if not change.edits else f"↳ {_code(effect.decision)}"
        why = f"for example {effect.example.on}" if effect.example.on else ""
        why = f"{why} {_selected(effect.example)}".strip()
        place = "" if change.edits else _plain(change.cause)
        yield _row("", shown, _plain(why), *_answers(effect.example), place)
        if effect.also is not None:
            yield _also(effect.also)


def _also(example: Example) -> str:
    """The row of another example of the same change: what a selector asked for, or else all that it has."""
    why = _selected(example) or f"with {', '.join(telling(example))}"
    return _row("", "", _plain(f"and {why}"), *_answers(example), "")


def _scope(edit: Edit) -> str:
    scope = _plain(applies_to(edit))
    if edit.example is not None and edit.example.on and not edit.example.constant:
        scope += f", for example {_plain(edit.example.on)}"
    selected = "" if edit.example is None else _plain(_selected(edit.example))
    return f"{scope}, {selected}" if selected else scope


def _selected(example: Example) -> str:
    """What a changed selector asked for, as the example has it."""
    facts = [f"{fact.path} = {fact.value}" for fact in example.facts if fact.path in example.selecting]
    return f"with {', '.join(facts)}" if facts else ""


def _pair(edit: Edit) -> tuple[str, str]:
    return _answers(edit.example) if edit.example is not None else ("", _plain(without_example(edit)))


def _answers(example: Example) -> tuple[str, str]:
    old, new = example.old, example.new
    apart = distance(new.type, old.value, new.value) if old.error is None and new.error is None else ""
    moves = "" if example.moves is None else f"; {_plain(moves_text(example.moves))}"
    moves += f"; {_plain(example.beyond)}" if example.beyond else ""
    return _plain(told_text(old)), f"**{_plain(told_text(new))}**" + (f" ({apart})" if apart else "") + moves


def _details(shown: ShownDifference) -> Iterator[str]:
    """The expressions, for those who want to see them."""
    later = (change for one in shown.difference.later for change in one.decisions)
    for change in (*shown.difference.decisions, *later):
        for edit in change.edits:
            lines = texts(edit)
            if not lines:
                continue
            yield ""
            title = f"{change.decision}, {applies_to(edit)}"
            yield f"<details><summary>{within_html(_one_line(title))}</summary>"
            yield ""
            yield "```diff"
            yield from (f"{sign} {line}".replace("```", "'''") for sign, line in lines)
            yield "```"
            facts = telling(edit.example) if edit.example is not None else []
            if facts:
                yield "Example: " + ", ".join(map(_code, facts))
            yield "</details>"


def _cluster(cluster: OnCluster) -> Iterator[str]:
    yield ""
    yield (
        f"**On {_code(cluster.file)}**: {counted(cluster.nodes, 'node')}, {counted(cluster.pods, 'pod')}, {_plain(cluster.taken)}"
    )
    yield from _all_affected(cluster.affected)
    if cluster.admission is not None:
        yield ""
        yield _plain(admission_text(cluster.admission))
        yield ""
        yield from (f"- {_plain(admission_kind_text(one))}" for one in cluster.admission.kinds)
    for later in cluster.later:
        if later.affected:
            yield ""
            yield f"**{from_when(later).capitalize()}, on the same nodes and pods**"
            yield from _all_affected(later.affected)


def _all_affected(found: tuple[Affected, ...]) -> Iterator[str]:
    changed = in_order(found)
    if changed:
        yield ""
        yield "| decision | changes for | together | most |"
        yield "|---|---|---|---|"
        for one in changed:
            yield _row(_code(one.decision), *_affected(one))
    unknown = untold(found)
    if unknown:
        yield ""
        for one in unknown:
            yield f"- {_code(one.decision)}: **{_plain(untold_text(one))}**"
    same = same_text(found)
    if same:
        yield ""
        yield f"{same}."


def _affected(one: Affected) -> tuple[str, str, str]:
    scope = f"{one.changed:,} of {one.total:,} {one.things}" if one.things != "cluster" else "the cluster"
    if one.failing:
        scope += f", {_plain(untold_text(one))}"
    if one.old is not None and one.new is not None:
        together = pair_text(Told(one.type, one.old), Told(one.type, one.new))
        most = "; ".join(f"{shift.name} {pair_text(shift.old, shift.new)}" for shift in one.largest[:3])
        return scope, _plain(together), _plain(most)
    kinds = "; ".join(f"{pair_text(shift.old, shift.new)}: {count:,}" for shift, count, _ in one.kinds)
    names = ", ".join(name for _, _, some in one.kinds[:1] for name in some if name)
    return scope, _plain(kinds), _plain(names)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _place(span: Span) -> str:
    return _code(f"{span.file}:{span.start.line}")


def _value(text: str | None) -> str:
    return "absent" if text is None else _plain(text)


def _code(text: str) -> str:
    return ticked(_one_line(text))


def _plain(text: str) -> str:
    """As text on a short line."""
    return plain(_one_line(text))


def _one_line(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= _LONGEST_CELL else shown[: _LONGEST_CELL - 1] + "…"
