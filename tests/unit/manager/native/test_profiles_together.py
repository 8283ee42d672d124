"""Profiles of which API servers apply some before the webhook is asked: in whatever order, pods become what the webhook alone makes of them."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from koordpolicy.algorithms.profile import PriorityClass
from koordpolicy.graph.rules import Requirement
from koordpolicy.manager.native.profiles import native_profiles
from koordpolicy.manager.webhooks.mutation import PodContext, mutate, roots_of
from koordpolicy.manager.webhooks.profiles import KIND, ColocationProfile, Profiles, Roots
from tests.unit.graph.policies_text import compiled
from tests.vectors.policies import document

BANDS = [
    document("QoSClass", "be", {"value": "BE", "kubernetes": ["BestEffort"], "defaultBand": "batch"}),
    document("QoSClass", "ls", {"value": "LS", "kubernetes": ["Burstable", "Guaranteed"], "defaultBand": "prod"}),
    document("PriorityBand", "prod", {"range": {"from": 9000, "to": 9999}, "default": 9500, "priorityClass": {"name": "koord-prod"}, "resources": {"mode": "Native"}}),
    document("PriorityBand", "batch", {"range": {"from": 5000, "to": 6999}, "default": 5500, "priorityClass": {"name": "koord-batch"}, "resources": {"mode": "Translated", "names": {"cpu": "b/cpu"}, "announced": True}}),
    document("PriorityBand", "mid", {"range": {"from": 7000, "to": 8999}, "default": 7500, "priorityClass": {"name": "koord-mid"}, "resources": {"mode": "Translated", "names": {"cpu": "m/cpu"}}}),
]  # fmt: skip
CLASSES = {
    name: PriorityClass(f"koord-{name}", value, "Never" if name == "mid" else "")
    for name, value in (("prod", 9500), ("batch", 5500), ("mid", 7500))
}
NAMESPACE = {"metadata": {"name": "default", "labels": {}}}
TEXTS = ("a", "b")
KEYS = ("team", "mark", "tier", "koordinator.sh/qosClass", "koordinator.sh/priority-class")

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from((*TEXTS, "BE", "koord-mid")), max_size=3)
pods = st.builds(
    lambda labels, priority, cpu, annotations: {
        "metadata": {"name": "p", "labels": labels, "annotations": annotations},
        "spec": {
            "priority": priority,
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}} if cpu else {}}
            ],
        },
    },
    labels,
    st.sampled_from((0, 5500, 9500)),
    st.sampled_from(("2", "")),
    st.dictionaries(st.sampled_from(TEXTS), st.sampled_from(TEXTS), max_size=1),
)
lines = st.one_of(
    st.just({}),
    st.just({}),
    st.builds(
        lambda key, values: {"matchExpressions": [{"key": key, "operator": "In", "values": values}]},
        st.sampled_from(KEYS),
        st.lists(st.sampled_from((*TEXTS, "BE")), min_size=1, max_size=2, unique=True),
    ),
    st.builds(
        lambda key, operator: {"matchExpressions": [{"key": key, "operator": operator}]},
        st.sampled_from(KEYS),
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
texts = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(TEXTS),
    st.just({"cel": "pod.labels[?'mark'].orValue('none') + '-'"}),
    st.just({"cel": "pod.band == '' ? 'none' : pod.band"}),
)
parts = st.one_of(
    st.fixed_dictionaries(
        {"labels": st.dictionaries(st.sampled_from(KEYS[:3]), texts, min_size=1, max_size=2)}
    ),
    st.fixed_dictionaries(
        {"annotations": st.dictionaries(st.sampled_from(TEXTS), texts, min_size=1, max_size=1)}
    ),
    st.fixed_dictionaries(
        {"copyLabels": st.dictionaries(st.sampled_from(KEYS), st.sampled_from(KEYS), min_size=1, max_size=1)}
    ),
    st.just({"labelSuffixes": {"mark": "+"}}),
    st.fixed_dictionaries({"qosClass": st.sampled_from(("BE", "LS"))}),
    st.fixed_dictionaries({"band": st.sampled_from(tuple(CLASSES))}),
    st.fixed_dictionaries({"schedulerName": st.sampled_from(TEXTS)}),
    st.sampled_from(
        (
            {"patch": {"metadata": {"labels": {"mark": "p"}}}},
            {"patch": {"spec": {"schedulerName": "p", "nodeSelector": {"x": "y"}}}},
        )
    ),
)
effects = st.builds(
    lambda some, translation: {
        **{key: value for one in some for key, value in one.items()},
        **({"resourceTranslation": translation} if translation else {}),
    },
    st.lists(parts, min_size=1, max_size=2),
    st.sampled_from(("", "", "Never", "Applied")),
)
matches = st.builds(
    lambda pods, condition: {
        **({"pods": pods} if pods else {}),
        **({"condition": condition} if condition else {}),
    },
    lines,
    st.sampled_from(("", "", "", "pod.band == 'batch'", "'mark' in pod.labels")),
)
profiles = st.builds(lambda match, spec: {"match": match, **spec}, matches, effects)


@dataclass(frozen=True)
class Selected:
    """One profile of an API server, whose selectors have chosen the pod before anything was changed."""

    profile: ColocationProfile

    def candidates(self, _roots: Roots) -> "list[Selected]":
        return [self]

    def matches(self, roots: Roots) -> bool:
        return not self.profile.selections[0].conditional or self.profile.matches(roots)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.profile, name)


def _holds(line: Requirement, labels: dict[str, str]) -> bool:
    return {
        "In": labels.get(line.key) in line.values,
        "Exists": line.key in labels,
        "DoesNotExist": line.key not in labels,
    }[line.operator]


@settings(max_examples=150, deadline=None)
@given(st.lists(profiles, min_size=2, max_size=3), st.lists(pods, min_size=1, max_size=6), st.randoms())
def test_any_order_of_policies_before_the_webhook(
    specs: list[dict[str, Any]], given_pods: list[dict[str, Any]], random: Any
) -> None:
    made = [document(KIND, f"p{at}", spec) for at, spec in enumerate(specs)]
    policies = compiled(*map(json.dumps, [*BANDS, *made])).graph
    if policies is None:
        reject()  # selectors and conditions contradict each other
    state = PodContext(NAMESPACE, lambda name: CLASSES.get(name.removeprefix("koord-")), 0)
    every = Profiles(policies)
    native = native_profiles(policies, ()).policies
    for pod in given_pods:
        roots = roots_of(pod, policies, state)
        candidates = {one.name: one for one in every.candidates(roots)}
        expected = mutate(pod, every, policies, state, lambda: 0.0).pod
        matched = [one.name for one in candidates.values() if one.matches(roots)]
        changed: Any = pod
        for name in random.sample(sorted(native), len(native)):
            lines = policies.selections(KIND, name)[0].requirements
            if name in candidates and all(_holds(line, pod["metadata"]["labels"]) for line in lines):
                one = Selected(candidates[name])
                changed = mutate(changed, one, policies, state, lambda: 0.0).pod
        assert mutate(changed, every, policies, state, lambda: 0.0).pod == expected, (
            specs,
            sorted(native),
            pod,
        )
        if set(matched) <= set(native):  # the webhook is not asked
            assert changed == expected, (specs, sorted(native), pod)
