"""What a pod says of the kernel's choice of whom to kill when memory is short."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from koordpolicy.model.integers import parse_int_any_base
from koordpolicy.model.protocol import OOM_SCORE_ADJ, OOM_SCORE_ADJ_SPEC
from koordpolicy.model.reading import ObjectError, embedded_object

_SCORES: Final = range(-1000, 1001)


def oom_scores(annotations: Mapping[str, str], containers: Iterable[str]) -> dict[str, int]:
    """The scores of containers: their own, else the pod's. What is unreadable or out of range says nothing."""
    if OOM_SCORE_ADJ not in annotations and OOM_SCORE_ADJ_SPEC not in annotations:
        return {}
    own, whole = _own(annotations), _whole(annotations)
    found: dict[str, int] = {}
    for name in containers:
        score = own.get(name, whole)
        if isinstance(score, int) and not isinstance(score, bool) and score in _SCORES:
            found[name] = score
    return found


def _own(annotations: Mapping[str, str]) -> Mapping[str, Any]:
    source = annotations.get(OOM_SCORE_ADJ_SPEC)
    try:
        return embedded_object(source, OOM_SCORE_ADJ_SPEC) if source else {}
    except ObjectError:
        return {}


def _whole(annotations: Mapping[str, str]) -> int | None:
    try:
        return parse_int_any_base(annotations.get(OOM_SCORE_ADJ, ""), 32)
    except ValueError:
        return None
