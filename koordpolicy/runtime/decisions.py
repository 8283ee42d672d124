"""The decision log: some of the decisions, each with the rules and facts behind it, off the hot path."""

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import Answer, RuleRef
from koordpolicy.graph.answer import FactRead
from koordpolicy.graph.notation import show
from koordpolicy.language.cel.types import DYN
from koordpolicy.language.cel.values import Optional
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.counting import Counters, Sample
from koordpolicy.runtime.decision_file import Sink
from koordpolicy.runtime.logs import LoggedOnce

LOG: Final = logging.getLogger(__name__)

QUEUE: Final = 4096
"""Entries that wait to be written; more are dropped and counted."""
_FACTS: Final = 50
_TEXT: Final = 200
_REVISIONS: Final = 8
"""Revisions whose decisions are counted apart."""


class DecisionCounts:
    """How often each decision was asked for. Adding costs two dictionary lookups: no lock, no strings made.

    Counts are added from one thread, usually the loop's, and read from any.
    """

    def __init__(self, metrics: Counters) -> None:
        self._answered: dict[str, int] = {}
        self._failed: dict[str, int] = {}
        self._revisions: dict[str, int] = {}
        metrics.count_elsewhere("koordpolicy_decisions_total", _Counts(self._by_decision))
        metrics.count_elsewhere("koordpolicy_revision_decisions_total", _Counts(self._by_revision))

    def add(self, decision: str, revision: str, number: int = 1, *, failed: bool = False) -> None:
        """Count decisions of one name that a revision answered, or failed to."""
        counts = self._failed if failed else self._answered
        counts[decision] = counts.get(decision, 0) + number
        revisions = self._revisions
        if revision in revisions:
            revisions[revision] += number
            return
        while len(revisions) >= _REVISIONS:
            del revisions[next(iter(revisions))]
        revisions[revision] = number

    def _by_decision(self) -> Iterable[Sample]:
        yield from (((name, "answered"), number) for name, number in list(self._answered.items()))
        yield from (((name, "failed"), number) for name, number in list(self._failed.items()))

    def _by_revision(self) -> Iterable[Sample]:
        return [((name,), number) for name, number in list(self._revisions.items())]


class _Counts:
    """Counts as metrics want them."""

    def __init__(self, samples: Callable[[], Iterable[Sample]]) -> None:
        self.samples = samples


class DecisionLog:
    """Writes one JSON object a line, from a thread of its own.

    `every` takes each so-many-th decision of a name, the first included; 0 takes none. Ask `wants` first: an
    answer with provenance costs more than a bare value.
    """

    def __init__(self, out: Sink, metrics: Counters, component: str, *, every: int = 100) -> None:
        self._out = out
        self._metrics = metrics
        self._component = component
        self._every = every
        self._seen: dict[str, int] = {}
        self._trouble = LoggedOnce(LOG)
        self._waiting: queue.Queue[dict[str, Any] | None] = queue.Queue(QUEUE)
        self._thread = threading.Thread(target=self._write, name="decision-log", daemon=True)
        self._thread.start()

    def wants(self, decision: str) -> bool:
        """Whether this decision is one to write down."""
        if not self._every:
            return False
        seen = self._seen.get(decision, 0)
        self._seen[decision] = seen + 1
        return seen % self._every == 0

    def record(self, answer: Answer, subject: Mapping[str, str], revision: str) -> None:
        """Write an answer down: `subject` says about what (node, pod, namespace), by kind. Never waits."""
        self.add(entry(answer, subject, revision, self._component, now_ns()))

    def head(self, decision: str, subject: Mapping[str, str], revision: str, digest: str) -> dict[str, Any]:
        """What every entry begins with: when, by whom, by which revision, on what, about what."""
        return _head(decision, subject, revision, digest, self._component, now_ns())

    def add(self, entry: dict[str, Any]) -> None:
        """Write an entry down that was made elsewhere. Never waits."""
        try:
            self._waiting.put_nowait(entry)
        except queue.Full:
            self.drop()

    def drop(self) -> None:
        """Count an entry that is not written."""
        self._metrics.add("koordpolicy_decision_log_total", result="dropped")

    def close(self) -> None:
        """Write what waits, within a few seconds."""
        try:
            self._waiting.put(None, timeout=5)
        except queue.Full:
            return
        self._thread.join(timeout=5)

    def _write(self) -> None:
        while (one := self._waiting.get()) is not None:
            try:
                self._out.write(json_text(one, default=str) + "\n")
                if self._waiting.empty():
                    self._out.flush()
                self._metrics.add("koordpolicy_decision_log_total", result="written")
                self._trouble.over()
            except (OSError, ValueError) as error:  # a full disk stays full for a while
                self._trouble.met(str(error), "the decision log cannot be written: %s", error)
                self._metrics.add("koordpolicy_decision_log_total", result="dropped")


def entry(
    answer: Answer, subject: Mapping[str, str], revision: str, component: str, now: int
) -> dict[str, Any]:
    """One entry of the log as a JSON object."""
    provenance = answer.provenance
    said = _head(answer.decision, subject, revision, provenance.digest, component, now)
    if answer.error is None:
        said["value"] = _plain(answer.value)
    else:
        said["error"] = str(answer.error)[:_TEXT]
    return {**said, **provenance_shown(provenance.rules, provenance.facts)}


def provenance_shown(rules: Sequence[RuleRef], facts: Sequence[FactRead]) -> dict[str, Any]:
    """The rules behind a decision with their places, and the facts that they read, the first of many."""
    said: dict[str, Any] = {
        "rules": [
            {
                "decision": rule.decision,
                "document": rule.document,
                "layer": rule.layer,
                "place": f"{rule.span.file}:{rule.span.start.line}:{rule.span.start.column}",
            }
            for rule in rules
        ],
        "facts": {fact.path: _plain(fact.value) if fact.present else None for fact in facts[:_FACTS]},
    }
    if len(facts) > _FACTS:
        said["factsOmitted"] = len(facts) - _FACTS
    return said


def _head(
    decision: str, subject: Mapping[str, str], revision: str, digest: str, component: str, now: int
) -> dict[str, Any]:
    return {
        "time": now / 1e9,
        "component": component,
        "revision": revision,
        "digest": digest,
        "decision": decision,
        "subject": dict(subject),
    }


def _plain(value: object) -> object:
    """A value as JSON has it; what is long is cut."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple | Mapping | Optional):
        value = show(DYN, value)  # which ends, whatever the parts of the value share
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
