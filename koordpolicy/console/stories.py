"""Why a pod is where it is, as one story: what webhooks made of it, how the scheduler decided, what holds it back on its node, whether it is
moved, how it ended, and what components told of it meanwhile.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from koordpolicy.agent.carrying_out import EVICTED
from koordpolicy.console.questions import Questions
from koordpolicy.console.worlds.world import OURS, CannotAnswer, PodBackground, PodSpan, ToldEvent
from koordpolicy.kube.port import Object
from koordpolicy.kube.snapshot import Snapshot

_HISTORY: Final = 20
_AGENT: Final = f"{OURS}agent"
_EVICTED: Final = re.compile(r"\bevicted for (\S+)")
_SUFFERS: Final = re.compile(r"(Interference/[^\s,]+)")
_ENDS: Final = {
    (_AGENT, EVICTED): "evicted",
    (f"{OURS}descheduler", "Descheduled"): "moved",
    (f"{OURS}scheduler", "Preempted"): "preempted",
}
"""Events that say how a pod ended, in the words of `PodSpan.outcome`."""


def story_of(
    questions: Questions,
    picture: Snapshot,
    name: str,
    spans: Sequence[PodSpan],
    submitted: Object | None,
    beside: PodBackground,
) -> dict[str, Any]:
    """Each chapter with its answer, or why there is none. `spans` are the pods', `submitted` as its owner wrote it.

    Raises `CannotAnswer` where nobody has heard of the pod.
    """
    now = picture.taken
    mine = sorted((span for span in spans if span.pod == name), key=lambda span: span.start)
    migration = _told(lambda: questions.migration(picture, name) or {})
    there = any(pod_name(pod) == name for pod in picture.pods)
    of_pod = [one for one in beside.events or () if one.about == f"Pod {name}"]
    if not (there or mine or of_pod or submitted is not None or migration.get("migration")):
        raise CannotAnswer(f"there is no pod `{name}`, and was none: `namespace/name` is what it is called")
    current = next((span for span in reversed(mine) if span.at(now) and span.node), None)
    chapters: dict[str, Any] = {
        "pod": name,
        "at": now / 1e9,
        "on": None if current is None else current.plain(),
        "history": [span.plain() for span in mine[-_HISTORY:]],
    }
    if submitted is not None:
        chapters["admission"] = _told(lambda: questions.admission(picture, submitted))
    elif there:
        chapters["admitted"] = _told(
            lambda: questions.admitted(picture, name, beside.submitted, beside.source)
        )
    chapters["scheduling"] = _told(lambda: questions.pod(picture, name))
    if current is not None:
        chapters["holds"] = _told(lambda: questions.holds(picture, name))
    if migration:
        chapters["migration"] = migration
    chapters["events"] = _events(questions, beside)
    if not there:
        chapters["ended"] = next((end for one in reversed(of_pod) if (end := _end(one))), None)
    return chapters


def _events(questions: Questions, beside: PodBackground) -> dict[str, Any]:
    """What was told, the latest last, with the rules behind evictions; `unknown` says what cannot be read."""
    told = beside.events
    return {
        "told": None if told is None else [_event(questions, one) for one in told],
        "unknown": beside.unknown or None,
    }


def _event(questions: Questions, one: ToldEvent) -> dict[str, Any]:
    reason = ""
    if one.component == _AGENT:
        found = _EVICTED.search(one.message) or _SUFFERS.search(one.message)
        reason = "" if found is None else found[1]
    return {
        "about": one.about,
        "by": one.component,
        "ours": one.ours,
        "reason": one.reason,
        "message": one.message,
        "warning": one.warning,
        "count": one.count,
        "first": one.first,
        "last": one.last,
        "earlier": one.earlier,
        "rules": questions.behind(reason) if reason else [],
    }


def _end(one: ToldEvent) -> dict[str, Any] | None:
    """How a pod ended, if an Event says it."""
    outcome = _ENDS.get((one.component, one.reason))
    return None if outcome is None else {"outcome": outcome, "at": one.last, "message": one.message}


def _told(question: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        return question()
    except CannotAnswer as error:
        return {"unknown": str(error)}


def pod_name(pod: Object) -> str:
    """A pod as it is called here: `namespace/name`."""
    metadata = pod["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
