"""A difference as plain values, for text, JSON and Markdown alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from koordpolicy.diagnostics import Span
from koordpolicy.graph.proof.same import same_value
from koordpolicy.graph.reads import ShownFact
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import Timestamp


class How(StrEnum):
    """What became of a rule, a document or a setting."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Told:
    """What one graph answers: a value of a type, or the error that it ends in, for want of a fact (`missing`) or not."""

    type: Type
    value: Any = None
    error: str | None = None
    missing: bool = field(default=False, compare=False)

    def same(self, other: "Told") -> bool:
        """Whether both say the same; 1, 1.0 and true are told apart. Two errors are alike, whatever they say."""
        if self.error is not None or other.error is not None:
            return self.error is not None and other.error is not None
        return same_value(self.value, other.value)


@dataclass(frozen=True, slots=True)
class Moves:
    """How far an amount moves on the everyday inputs on which it does: the least and the greatest step, signed.

    `shares` are the same in percent of what it was, None where it was nothing somewhere or changed its sign. `on` are
    the inputs in a phrase.
    """

    type: Type
    steps: tuple[float, float]
    shares: tuple[float, float] | None
    on: str


@dataclass(frozen=True, slots=True)
class Example:
    """An input, and what each of the two graphs answered when it was asked.

    `on` is the input in a phrase ("" where nothing of it counts), `facts` are those that the answers depend on, `given`
    the same as plain data that a test can say: asked of these alone, both graphs answer as they do here.
    `constant` tells that the rules behind both answers are plain values, whatever the facts. `selecting` are paths
    of those facts that a selector or condition asked for which is another one in the other graph; they come first.
    `moves` tells of an amount how far it moves on other everyday inputs, where that is not the same on all.
    `beyond` says of an input with amounts that no cluster has where alone such a difference was seen, "" of others.
    """

    on: str
    facts: tuple[ShownFact, ...]
    old: Told
    new: Told
    constant: bool = False
    selecting: tuple[str, ...] = ()
    given: Mapping[str, object] = field(default_factory=dict)
    moves: Moves | None = None
    beyond: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """A rule that was added, removed or changed.

    `where` says in words what it applies to, "" for everything, and `was` what it applied to, None where that is the
    same. `old` and `new` are its values as written, None
    where there is no such rule.
    `example` is an input that the rule decides and on which the answers differ. Without one `gave_up` says why none
    was found, and is "" where it is proved that there is none. Where `was` is set, `example` is one that the rule
    decides no longer and `also` one that it decides now, as far as there are both. Elsewhere `also` is an input on which
    the answer goes the other way, where there is one: down where `example` goes up.
    """

    how: How
    document: str
    layer: str
    where: str
    old: str | None
    new: str | None
    span: Span
    example: Example | None
    gave_up: str = ""
    was: str | None = None
    also: Example | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """A decision that nobody edited, but that answers differently because of what it reads.

    `also` is an input on which it goes the other way, where there is one.
    """

    decision: str
    example: Example
    also: Example | None = None


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """A decision whose rules changed, and others that change with it.

    Without edits it is what `cause` brought about: a library, a class, a pack.
    """

    decision: str
    meaning: str
    edits: tuple[Edit, ...]
    effects: tuple[Effect, ...] = ()
    cause: str = ""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A key of a document that is no decision: an order, a reference, a limit. None where it is absent."""

    document: str
    path: str
    old: str | None
    new: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A whole document that came or went; `says` what is worth knowing of it at once."""

    how: How
    document: str
    span: Span
    says: str = ""


@dataclass(frozen=True, slots=True)
class Open:
    """A decision of which it is not known whether it changes. `why` completes the sentence "gave up: ..."."""

    decision: str
    why: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Later:
    """What changes from a moment that is still to come, when exceptions begin or end, and what is open then."""

    moment: Timestamp
    decisions: tuple[DecisionChange, ...] = ()
    open: tuple[Open, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything that differs between two revisions. `old` and `new` are the digests of their graphs.

    `equal` are decisions that are written differently and proved to decide alike; of those in `open` neither is
    known. `renamed` are documents that only have another name, as pairs. `later` is what exceptions hide today, or
    bring another day, by time.
    """

    old: str
    new: str
    decisions: tuple[DecisionChange, ...] = ()
    settings: tuple[SettingChange, ...] = ()
    documents: tuple[DocumentChange, ...] = ()
    equal: tuple[str, ...] = field(default=())
    open: tuple[Open, ...] = field(default=())
    renamed: tuple[tuple[str, str], ...] = field(default=())
    later: tuple[Later, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the revisions are known to mean the same."""
        return not (self.differs or self.open or self.later)

    @property
    def differs(self) -> bool:
        """Whether something is known to differ."""
        to_come = any(one.decisions for one in self.later)
        return bool(self.decisions or self.settings or self.documents or to_come)
