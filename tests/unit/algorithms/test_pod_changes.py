"""Translation of resources, the extended resource annotation, and the steps of profiles."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.profile import PriorityClass, ProfileEffect, applies, apply_profile
from koordpolicy.algorithms.translate import (
    extended_spec,
    read_extended_spec,
    translate_pod,
    translate_resources,
    with_extended_spec,
)
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY, EXTENDED_RESOURCE_SPEC
from koordpolicy.model.reading import ObjectError

NAMES = {"cpu": BATCH_CPU, "memory": BATCH_MEMORY}
BATCH = (BATCH_CPU, BATCH_MEMORY)


def pod(**resources: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": resources}]}}


def test_cpu_becomes_millicores_and_memory_stays_as_written() -> None:
    found = translate_resources({"cpu": "1.5", "memory": "4Gi", "x.io/y": "1"}, NAMES)
    assert found == {BATCH_CPU: "1500", BATCH_MEMORY: "4Gi", "x.io/y": "1"}
    assert translate_resources({"cpu": 2}, NAMES) == {BATCH_CPU: "2k"}
    assert translate_resources({"cpu": "1", BATCH_CPU: "7"}, NAMES) == {BATCH_CPU: "1k"}


def test_all_containers_and_the_overhead_are_translated() -> None:
    before = pod(requests={"cpu": "1"}, limits={"memory": "1Gi"})
    before["spec"]["initContainers"] = [
        {"name": "i", "resources": {"limits": {"cpu": "100m"}}},
        {"name": "j"},
    ]
    before["spec"]["overhead"] = {"cpu": "50m", "memory": "1Mi"}
    kept = copy.deepcopy(before)
    after = translate_pod(before, NAMES)
    assert after["spec"] == {
        "containers": [
            {
                "name": "c",
                "resources": {
                    "requests": {BATCH_CPU: "1k", BATCH_MEMORY: "1Gi"},
                    "limits": {BATCH_MEMORY: "1Gi"},
                },
            }
        ],
        "initContainers": [
            {"name": "i", "resources": {"requests": {BATCH_CPU: "100"}, "limits": {BATCH_CPU: "100"}}},
            {"name": "j"},
        ],
        "overhead": {BATCH_CPU: "50", BATCH_MEMORY: "1Mi"},
    }
    assert before == kept
    assert translate_pod(after, NAMES) == after


def test_without_names_a_pod_stays_the_same_object() -> None:
    before = pod(requests={"cpu": "1"})
    assert translate_pod(before, {}) is before


def test_an_unreadable_amount_names_the_place() -> None:
    with pytest.raises(ObjectError, match=r"spec\.containers\[0\]\.requests\.cpu: `one` is not a quantity"):
        translate_pod(pod(requests={"cpu": "one"}), NAMES)


def annotation(changed: Any) -> str | None:
    found = changed["metadata"].get("annotations", {}).get(EXTENDED_RESOURCE_SPEC)
    assert found is None or isinstance(found, str)
    return found


def test_the_annotation_shows_what_regular_containers_have() -> None:
    before = pod(requests={BATCH_CPU: "1000", BATCH_MEMORY: "2Gi", "cpu": "1"}, limits={BATCH_CPU: "2k"})
    before["spec"]["initContainers"] = [{"name": "i", "resources": {"requests": {BATCH_CPU: 5}}}]
    before["spec"]["containers"].insert(0, {"name": "a"})
    text = annotation(with_extended_spec(before, BATCH))
    assert text == (
        '{"containers":{"c":{"requests":{"kubernetes.io/batch-cpu":"1k","kubernetes.io/batch-memory":"2Gi"},'
        '"limits":{"kubernetes.io/batch-cpu":"2k"}}}}'
    )
    assert read_extended_spec(text) == extended_spec(before, BATCH)


def test_the_annotation_is_written_only_when_it_says_something_new() -> None:
    before = pod(requests={BATCH_CPU: "1000"})
    once = with_extended_spec(before, BATCH)
    assert with_extended_spec(once, BATCH) is once
    written = json.dumps({"containers": {"c": {"requests": {BATCH_CPU: 1000}}}})
    same = {**before, "metadata": {"annotations": {EXTENDED_RESOURCE_SPEC: written}}}
    assert with_extended_spec(same, BATCH) is same
    plain = pod(requests={"cpu": "1"})
    assert with_extended_spec(plain, BATCH) is plain


def test_a_stale_annotation_becomes_empty() -> None:
    stale = pod(requests={"cpu": "1"})
    stale["metadata"]["annotations"] = {EXTENDED_RESOURCE_SPEC: '{"containers":{"c":{"requests":{"a":1}}}}'}
    emptied = with_extended_spec(stale, BATCH)
    assert annotation(emptied) == "{}"
    assert with_extended_spec(emptied, BATCH) is emptied


@pytest.mark.parametrize(
    "text", ["", "[]", '{"containers": []}', '{"containers": {"c": {"requests": {"a": "b"}}}}']
)
def test_a_malformed_annotation_is_an_error(text: str) -> None:
    broken = pod(requests={BATCH_CPU: 1})
    broken["metadata"]["annotations"] = {EXTENDED_RESOURCE_SPEC: text}
    with pytest.raises(ObjectError, match="extended-resource-spec"):
        with_extended_spec(broken, BATCH)


@pytest.mark.parametrize(
    ("probability", "applied"),
    [(0, 0), (-5, 0), (1, 2), (50, 51), (98, 99), (99, 100), (100, 100), (150, 100)],
)
def test_a_probability_applies_to_one_draw_more(probability: int, applied: int) -> None:
    assert sum(applies(probability, draw) for draw in range(100)) == applied


def test_an_empty_effect_changes_nothing() -> None:
    before = {"metadata": {"name": "p"}, "spec": {"containers": []}}
    assert apply_profile(before, ProfileEffect()) == before


def test_each_step_sees_the_ones_before() -> None:
    before = {"metadata": {"labels": {"a": "1"}}, "spec": {"preemptionPolicy": "Never"}}
    effect = ProfileEffect(
        labels={"b": "2"},
        annotations={"n": "v"},
        label_copies={"b": "c", "missing": "d"},
        annotation_copies={"n": "m"},
        label_suffixes={"c": "-x", "unknown": "-y"},
        scheduler_name="own",
        qos="BE",
        priority_class=PriorityClass("low", 5000),
        sub_priority=-3,
        patch={"metadata": {"labels": {"a": None, "e": "5"}}, "spec": {"hostNetwork": True}},
    )
    kept = copy.deepcopy(before)
    assert apply_profile(before, effect) == {
        "metadata": {
            "labels": {
                "b": "2",
                "c": "2-x",
                "d": "",
                "e": "5",
                "koordinator.sh/qosClass": "BE",
                "koordinator.sh/priority": "-3",
            },
            "annotations": {"n": "v", "m": "v"},
        },
        "spec": {
            "schedulerName": "own",
            "priorityClassName": "low",
            "priority": 5000,
            "hostNetwork": True,
        },
    }
    assert before == kept


KEYS = st.sampled_from(["a", "b", "c"])
WORDS = st.dictionaries(KEYS, st.sampled_from(["1", "2", ""]), max_size=3)


@given(WORDS, WORDS, WORDS)
def test_labels_and_annotations_are_set_whatever_was_there(
    present: dict[str, str], labels: dict[str, str], annotations: dict[str, str]
) -> None:
    before = {"metadata": {"labels": present}, "spec": {}}
    after: Any = apply_profile(before, ProfileEffect(labels=labels, annotations=annotations))
    assert after["metadata"].get("labels", {}) == {**present, **labels}
    assert after["metadata"].get("annotations", {}) == annotations
