"""A mutation taken apart makes of a pod what it makes as a whole."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.profile import PriorityClass, ProfileEffect, apply_profile
from koordpolicy.manager.webhooks.tracing import path_text, pieces

_KEYS = st.sampled_from(["a", "b", "koordinator.sh/qosClass", "c/d"])
_TEXTS = st.dictionaries(_KEYS, st.sampled_from(["1", "2", "a", "b", ""]), max_size=3)
_EFFECTS = st.builds(
    ProfileEffect,
    labels=_TEXTS,
    annotations=_TEXTS,
    label_copies=_TEXTS,
    annotation_copies=_TEXTS,
    label_suffixes=_TEXTS,
    scheduler_name=st.sampled_from(["", "koord-scheduler"]),
    qos=st.sampled_from(["", "BE"]),
    priority_class=st.sampled_from([None, PriorityClass("p", 5), PriorityClass("q", 0, "Never")]),
    sub_priority=st.sampled_from([None, 0, 7]),
    patch=st.sampled_from([None, {"metadata": {"labels": {"a": None, "z": "1"}}}]),
)


@given(_EFFECTS, _TEXTS, _TEXTS)
def test_pieces_make_the_whole(effect: ProfileEffect, labels: Any, annotations: Any) -> None:
    pod = {"metadata": {"labels": labels, "annotations": annotations}, "spec": {"preemptionPolicy": "x"}}
    apart: Any = pod
    for _, piece in pieces(effect):
        apart = apply_profile(apart, piece)
    assert _told(apart) == _told(apply_profile(pod, effect))


def _told(pod: Any) -> Any:
    """An empty mapping and none are alike."""
    metadata = {key: value for key, value in pod["metadata"].items() if value}
    return {**pod, "metadata": metadata}


def test_paths_are_written_as_in_manifests() -> None:
    path = "/spec/containers/0/resources/requests/kubernetes.io~1batch-cpu"
    assert path_text({"op": "add", "path": path}) == (
        'spec.containers[0].resources.requests["kubernetes.io/batch-cpu"]'
    )
