"""Of a submitted pod the facts are made that its profiles read, and nobody sees a difference."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.pod_request import pod_demand
from koordpolicy.algorithms.translate import extended_spec
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.webhooks import mutation
from koordpolicy.manager.webhooks.mutation import PodContext, mutate, some_facts
from koordpolicy.manager.webhooks.profiles import ColocationProfileError, Profiles
from koordpolicy.model.facts.pod import SomePodFacts, pod_facts
from koordpolicy.model.pod import read_pod
from koordpolicy.model.quantity import Quantity, QuantityError, canonical_text, milli_text, parse_quantity
from tests.vectors.policies import document, graph

POD: Final[dict[str, Any]] = {
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "labels": {"app": "spark", "koordinator.sh/priority": "7"},
        "annotations": {"a": "b"},
    },
    "spec": {
        "schedulerName": "s",
        "priority": 5,
        "priorityClassName": "koord-batch",
        "preemptionPolicy": "Never",
        "hostNetwork": True,
        "schedulingGroup": {"podGroupName": "g"},
        "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}],
    },
}  # fmt: skip
READ: Final = {
    "labels alone": ("'x'", True),
    "what stands by itself": ("pod.name + pod.schedulerName + pod.kubernetesQoS + string(pod.priority)", True),
    "annotations": ("pod.annotations['a'] + pod.schedulingGroup + string(pod.subPriority)", True),
    "a field of the spec": ("pod.hostNetwork ? 'yes' : 'no'", False),
    "containers": ("pod.containers.all(c, c.image == 'i') ? 'yes' : 'no'", False),
    "amounts": ("pod.request.cpu > pod.limit.cpu ? 'yes' : 'no'", False),
    "a class": ("pod.qos", False),
    "what is said of priority": ("has(pod.priority) ? 'yes' : 'no'", True),
}  # fmt: skip


def of(expression: str) -> RuleGraph:
    return graph(
        document(
            "ColocationProfile",
            "p",
            {
                "match": {"pods": {"matchLabels": {"app": "spark"}}},
                "labels": {"said": {"cel": expression}},
                "qosClass": "BE",
            },
        )
    )


def mutated(compiled: RuleGraph, pod: Mapping[str, Any]) -> object:
    state = PodContext({"metadata": {"name": "n"}}, lambda _: None, 1_800_000_000 * 10**9)
    return mutate(pod, Profiles(compiled), compiled, state, lambda: 0.0)


@pytest.mark.parametrize("name", READ)
def test_a_mutation_is_the_same_by_some_facts_as_by_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expression, some = READ[name]
    compiled = of(expression)
    assert (some_facts(compiled) is not None) == some
    unsaid = {"metadata": {"labels": {"app": "spark"}}, "spec": {"containers": []}}
    found = []
    for pod in (POD, unsaid):
        try:
            found.append(mutated(compiled, pod))
        except ColocationProfileError as error:
            found.append(str(error))
    monkeypatch.setattr(mutation, "some_facts", lambda _: None)
    for pod, before in zip((POD, unsaid), found, strict=True):
        try:
            whole: object = mutated(compiled, pod)
        except ColocationProfileError as error:
            whole = str(error)
        assert whole == before


def test_what_is_made_by_itself_is_what_whole_records_say() -> None:
    pod = read_pod(POD)
    whole = pod_facts(pod, pod_demand(pod), TIMES)
    made = [path for path in whole if SomePodFacts.can_make([path])]
    assert {"name", "labels", "priority", "kubernetesQoS"} <= set(made)
    assert SomePodFacts(made).of(pod) == {path: whole[path] for path in made}
    bare = read_pod({"metadata": {}, "spec": {}})
    whole = pod_facts(bare, pod_demand(bare), TIMES)
    assert SomePodFacts(made).of(bare) == {path: whole[path] for path in made if path in whole}


@given(
    st.one_of(
        st.from_regex(r"[+-]?[0-9]{1,6}(\.[0-9]{1,4})?(m|k|Ki|Mi|G|e3|E2|n|u)?", fullmatch=True),
        st.integers(-(10**9), 10**9),
    )
)
def test_quantities_are_written_as_they_are_read(value: object) -> None:
    assert canonical_text(value) == str(parse_quantity(value))
    assert milli_text(value) == str(Quantity.of(parse_quantity(value).milli))


@pytest.mark.parametrize("value", ["", "x", "1x", None, True, [], 1 << 200, "1e99"])
def test_what_is_no_quantity_is_none_however_it_is_asked(value: object) -> None:
    expected: object
    try:
        expected = str(parse_quantity(value))
    except QuantityError as error:
        expected = str(error)
    for ask in (canonical_text, canonical_text):  # twice: what is kept must not keep a mistake
        try:
            found = ask(value)
        except QuantityError as error:
            found = str(error)
        assert found == expected


def test_extended_resources_are_told_in_canonical_text() -> None:
    resources = {"requests": {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "1024Mi"}}
    pod = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    told = extended_spec(pod, ["kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"])
    assert told == {
        "main": {"requests": {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "1Gi"}}
    }
