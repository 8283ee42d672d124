"""Reservations on their way into the in-memory cluster, past the webhooks."""

import json
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.resources import RESERVATIONS
from koordpolicy.manager.webhooks.reservations import mutated_reservations
from tests.unit.graph.policies_text import graph as graph_without_pack
from tests.unit.manager.clusters import SmallCluster, cases
from tests.unit.manager.test_webhooks import missing
from tests.vectors.policies import document, graph

CASES = cases(Path(__file__).with_name("reservations.yaml"))


def profiles(*specs: dict[str, Any]) -> list[dict[str, Any]]:
    return [document("ColocationProfile", f"p{at}", spec) for at, spec in enumerate(specs)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_a_reservation_on_its_way_in(case: dict[str, Any]) -> None:
    cluster = SmallCluster(graph(*profiles(*case["policies"])))
    if "refused" in case:
        with pytest.raises(KubeError, match=case["refused"]):
            cluster.create(RESERVATIONS, case["reservation"])
        return
    stored = cluster.create(RESERVATIONS, case["reservation"])
    assert missing(case.get("stored", {}), stored) == []
    template = stored["spec"].get("template", {}).get("spec", {})
    assert not set(case.get("absent", ())) & set(template)


@pytest.mark.parametrize(
    "specs", [(), ({"labels": {"a": "b"}},), ({"labels": {"a": "b"}, "reservations": True},)]
)
def test_without_a_pack_reservations_are_what_profiles_say(specs: tuple[dict[str, Any], ...]) -> None:
    compiled = graph_without_pack(*map(json.dumps, profiles(*specs)))
    stored = SmallCluster(compiled).create(RESERVATIONS, {"metadata": {"name": "r"}, "spec": {}})
    named = bool(specs) and "reservations" in specs[0]
    assert stored["metadata"].get("labels") == ({"a": "b"} if named else None)
    assert (mutated_reservations(compiled) is not None) == named


def test_api_servers_ask_about_reservations_that_a_profile_may_select() -> None:
    assert mutated_reservations(graph()) is None
    match = {"pods": {"matchLabels": {"app": "spark"}}}
    asked = mutated_reservations(
        graph(*profiles({"match": match, "reservations": True, "labels": {"a": "b"}}))
    )
    assert asked is not None
    assert asked.objects == ({"key": "app", "operator": "In", "values": ["spark"]},)
