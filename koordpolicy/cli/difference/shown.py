"""What the formats have in common: the difference, its names, and words used by all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from koordpolicy.cli.failed import failure_text
from koordpolicy.graph.diff import Affected, Difference, Edit, Example, How, Later
from koordpolicy.graph.diff.words import moves_text
from koordpolicy.graph.failed import FailedRule
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.cel.values_time import format_timestamp

MARKS = {How.ADDED: "+", How.REMOVED: "-", How.CHANGED: "~"}
MOST_FAILED = 8
"""Rules that failed and are shown; programs are told of all."""
EVERYWHERE = "everywhere"
EVERYTHING = "everything"
PROVED = "written differently, proved to decide alike"


@dataclass(frozen=True, slots=True)
class LaterOnCluster:
    """How decisions come out on the same nodes and pods from a moment that is still to come."""

    moment: Timestamp
    affected: tuple[Affected, ...]


@dataclass(frozen=True, slots=True)
class FailedOn:
    """A rule that failed when a snapshot was asked about, in the old revision, the new one, or both."""

    rule: FailedRule
    old: bool
    new: bool


@dataclass(frozen=True, slots=True)
class AdmissionKind:
    """One way in which admission changes: in words, for how many pods, and some of them by name."""

    what: str
    count: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnAdmission:
    """How the pods of a snapshot would be admitted, were they created anew: of `total` pods `changed` otherwise than before."""

    total: int
    changed: int
    kinds: tuple[AdmissionKind, ...] = ()


@dataclass(frozen=True, slots=True)
class OnCluster:
    """The snapshot that both revisions were asked on: its name, its time, its size, how decisions came out, what failed.

    `later` are the moments at which exceptions begin or end, as in the difference; `admission` is None where nothing changed
    that it is decided by.
    """

    file: str
    taken: str
    nodes: int
    pods: int
    affected: tuple[Affected, ...]
    later: tuple[LaterOnCluster, ...] = ()
    failed: tuple[FailedOn, ...] = ()
    admission: OnAdmission | None = None


@dataclass(frozen=True, slots=True)
class SimulatedEffect:
    """What both revisions do in simulations, in each format; the data are None where both are the same policies.

    `interrupted` says where somebody interrupted it, "" where nobody did.
    """

    text: str
    markdown: str
    data: Mapping[str, Any] | None
    interrupted: str = ""


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """A difference to be shown; `old` and `new` are the titles of the revisions."""

    old: str
    new: str
    difference: Difference
    cluster: OnCluster | None = None
    effect: SimulatedEffect | None = None
    width: int = 80
    colour: bool = False


def failed_title(cluster: OnCluster) -> str:
    """`evaluations that failed on cluster.json: 12`; "" where none did."""
    times = sum(one.rule.times for one in cluster.failed)
    return f"evaluations that failed on {cluster.file}: {times:,}" if times else ""


def failed_text(one: FailedOn, shown: "ShownDifference") -> str:
    """How often a rule failed, in which revision, and with what."""
    where = "" if one.old and one.new else f" in {shown.new if one.new else shown.old}"
    rule = one.rule
    return f"{rule.times:,}{where}: {failure_text(rule)}, such as {rule.example or 'the whole'}: {rule.error}"


def headline(difference: Difference) -> str:
    """The whole in half a sentence: `3 decisions and 1 setting change, 1 more later,`."""
    count = sum(len(one.decisions) for one in difference.later)
    if not count:
        return _headline_now(difference)
    now = _headline_now(replace(difference, later=()))
    return f"{now}, {count:,} more later," if difference.decisions else f"{now} now, but {count:,} later,"


def from_when(one: Later | LaterOnCluster) -> str:
    """Since when a change that is to come holds: `from 2027-01-01`, a time only where it is no midnight."""
    return f"from {format_timestamp(one.moment).removesuffix('T00:00:00Z')}"


def _headline_now(difference: Difference) -> str:
    if difference.empty:
        return "nothing changes"
    if not difference.differs:
        count = len(difference.open) + sum(len(one.open) for one in difference.later)
        return f"it is open whether {count:,} decision{' changes' if count == 1 else 's change'}"
    counts = (
        (len(difference.decisions), "decision"),
        (len(difference.settings), "setting"),
        (sum("PolicyTest/" in one.document for one in difference.documents), "test"),
    )
    parts = [f"{count:,} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    if not parts:
        return "no decision changes"
    one = len(parts) == 1 and parts[0].startswith("1 ")
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts) + (
        " changes" if one else " change"
    )


def applies_to(edit: Edit) -> str:
    """What a rule applies to, in words, and what it applied to where that is something else."""
    where = edit.where or EVERYWHERE
    return (
        where if edit.was is None else f"was for {edit.was or EVERYTHING}, now for {edit.where or EVERYTHING}"
    )


def without_example(edit: Edit) -> str:
    """What is known of a rule's change that no example shows."""
    return f"gave up: {edit.gave_up}" if edit.gave_up else "proved to matter on no input"


def texts(edit: Edit) -> list[tuple[str, str]]:
    """The expressions of a rule that is no constant, as lines to take away and to add."""
    if edit.old == edit.new or (edit.example is not None and edit.example.constant):
        return []
    lines = [] if edit.old is None else [("-", edit.old)]
    return lines + ([] if edit.new is None else [("+", edit.new)])


def outcome(example: Example, pair: str) -> str:
    """The pair of answers, and on what, where that counts; how far it moves elsewhere; that it was seen there alone."""
    text = pair if example.constant or not example.on else f"{pair} on {example.on}"
    more = ("" if example.moves is None else moves_text(example.moves), example.beyond)
    return "; ".join(part for part in (text, *more) if part)


def telling(example: Example) -> list[str]:
    """The figures of an example, as policies write them; empty lists and whole records say nothing.

    What a changed selector asked for tells which way the change goes, whatever it is.
    """
    return [
        f"{fact.path} = {fact.value}"
        for fact in example.facts
        if fact.path in example.selecting
        or (
            not example.constant
            and fact.present
            and not fact.value.startswith(("0 ", "the whole ", "[]", "{}"))
        )
    ]


def untold_text(one: Affected) -> str:
    """How much of a decision could not be told, and for lack of what."""
    return f"could not be told on {one.failing:,} of {one.total:,} {one.things}: {one.why}"


def same_text(found: tuple[Affected, ...]) -> str:
    """How many decisions come out the same on all that they were asked about; "" for none."""
    same = sum(one.same for one in found)
    return (
        f"{same:,} of the decisions above come{'s' if same == 1 else ''} out the same everywhere"
        if same
        else ""
    )


def untold(found: tuple[Affected, ...]) -> list[Affected]:
    """Those of which no change was seen, though not everything could be asked about."""
    return sorted((one for one in found if one.untold), key=lambda one: one.decision)


def admission_text(found: OnAdmission) -> str:
    """How many pods it is about."""
    return f"admission: {found.changed:,} of {found.total:,} pods change, as they would be created anew"


def admission_kind_text(one: AdmissionKind) -> str:
    """`refused from now on: 2, as shop/a, shop/b`."""
    more = ", ..." if one.count > len(one.names) else ""
    return f"{one.what}: {one.count:,}, as {', '.join(one.names)}{more}"


def in_order(found: tuple[Affected, ...]) -> list[Affected]:
    """Those that change anything, the widest change first."""
    return sorted(
        (one for one in found if one.changed), key=lambda one: (-one.changed / one.total, one.decision)
    )
