"""Why a pod is where it is, as one story: what webhooks made of it, how the scheduler decided, what its node does to it, whether it is moved,
how it ended.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from koordpolicy.console.questions import Questions
from koordpolicy.console.worlds.world import CannotAnswer, PodSpan
from koordpolicy.kube.port import Object
from koordpolicy.kube.snapshot import Snapshot

SUPPRESSION: Final = "CPUSuppress.target"
"""What holds best-effort pods of a node back."""

_BEST_EFFORT: Final = "BE"
_HISTORY: Final = 20


def story_of(
    questions: Questions, picture: Snapshot, name: str, spans: Sequence[PodSpan], submitted: Object | None
) -> dict[str, Any]:
    """Each chapter with its answer, or why there is none. `spans` are the pods', `submitted` as its owner wrote it.

    Raises `CannotAnswer` where nobody has heard of the pod.
    """
    now = picture.taken
    mine = sorted((span for span in spans if span.pod == name), key=lambda span: span.start)
    migration = _told(lambda: questions.migration(picture, name) or {})
    known = mine or submitted is not None or migration.get("migration")
    if not known and not any(pod_name(pod) == name for pod in picture.pods):
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
    chapters["scheduling"] = _told(lambda: questions.pod(picture, name))
    if current is not None:
        chapters["node"] = _told(lambda: questions.decision(picture, SUPPRESSION, current.node))
        chapters["heldBack"] = current.qos == _BEST_EFFORT
    if migration:
        chapters["migration"] = migration
    return chapters


def _told(question: Any) -> Mapping[str, Any]:
    try:
        answer: Mapping[str, Any] = question()
    except CannotAnswer as error:
        return {"unknown": str(error)}
    return answer


def pod_name(pod: Object) -> str:
    """A pod as it is called here: `namespace/name`."""
    metadata = pod["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
