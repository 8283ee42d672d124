"""What a co-location profile does to a pod: its steps, in the order that is fixed for all of them.

Labels, annotations, copies of labels and annotations, suffixes, scheduler, class, priority, sub-priority,
patch. Each step overwrites what is there and sees what the steps before it did.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.model.protocol import QOS_CLASS, SUB_PRIORITY
from koordpolicy.model.reading import NO_TEXT, Json, mapping, texts
from koordpolicy.model.shapes import POD
from koordpolicy.model.strategic_merge import strategic_merge

ALWAYS: Final = 100


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """What a pod takes over from a PriorityClass object."""

    name: str
    value: int
    preemption_policy: str = ""


@dataclass(frozen=True, slots=True)
class ProfileEffect:
    """What a profile sets; what is empty or None is left alone. Copies go from key to value."""

    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    annotations: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    label_copies: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    annotation_copies: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    label_suffixes: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    scheduler_name: str = ""
    qos: str = ""
    priority_class: PriorityClass | None = None
    sub_priority: int | None = None
    patch: Json | None = None


def applies(probability: float, draw: float, *, inclusive: bool = True) -> bool:
    """Whether a profile with this probability in percent applies for a random number from 0 to below 100.

    0 never and 100 always. Between them a draw below the probability applies; when `inclusive`, the draw
    counts in whole numbers and one equal to the probability applies too, so that N percent are in truth
    N + 1 in a hundred, as workloads made for Koordinator see it.
    """
    if not inclusive:
        return draw < probability
    return probability == ALWAYS or (probability != 0 and int(draw) <= probability)


def apply_profile(pod: Json, effect: ProfileEffect) -> Json:
    """The pod with the effect. Raises ObjectError for a malformed pod, PatchError for a bad patch.

    A copy from a key that is missing writes an empty value; a suffix needs an existing label.
    """
    metadata = mapping(pod, "metadata")
    labels = dict(texts(metadata, "labels", "metadata"))
    annotations = dict(texts(metadata, "annotations", "metadata"))
    labels.update(effect.labels)
    annotations.update(effect.annotations)
    for source, target in effect.label_copies.items():
        labels[target] = labels.get(source, "")
    for source, target in effect.annotation_copies.items():
        annotations[target] = annotations.get(source, "")
    for key, suffix in effect.label_suffixes.items():
        if key in labels:
            labels[key] += suffix
    spec = dict(mapping(pod, "spec"))
    if effect.scheduler_name:
        spec["schedulerName"] = effect.scheduler_name
    if effect.qos:
        labels[QOS_CLASS] = effect.qos
    if effect.priority_class is not None:
        _prioritise(spec, effect.priority_class)
    if effect.sub_priority is not None:
        labels[SUB_PRIORITY] = str(effect.sub_priority)
    named = {**metadata, **_unless_empty("labels", labels), **_unless_empty("annotations", annotations)}
    changed: Json = {**pod, "metadata": named, "spec": spec}
    return changed if effect.patch is None else strategic_merge(changed, effect.patch, POD)


def _prioritise(spec: dict[str, object], found: PriorityClass) -> None:
    spec["priorityClassName"] = found.name
    spec["priority"] = found.value
    if found.preemption_policy:
        spec["preemptionPolicy"] = found.preemption_policy
    else:
        spec.pop("preemptionPolicy", None)


def _unless_empty(key: str, values: Mapping[str, str]) -> dict[str, object]:
    return {key: values} if values else {}
