"""Paths and queries, safely put together."""

import pytest

from koordpolicy.kube import Rejected
from koordpolicy.kube.api.paths import path_of, query_of, segment
from koordpolicy.kube.resources import NODES, PODS, RESERVATIONS


def test_where_objects_live() -> None:
    assert path_of(PODS, None) == "/api/v1/pods"
    assert path_of(PODS, "ns") == "/api/v1/namespaces/ns/pods"
    assert path_of(PODS, "ns", "a", "status") == "/api/v1/namespaces/ns/pods/a/status"
    assert path_of(NODES, None, "n.example.org") == "/api/v1/nodes/n.example.org"
    assert path_of(RESERVATIONS, None, "r") == "/apis/scheduling.koordinator.sh/v1alpha1/reservations/r"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../secrets", "a%2fb"])
def test_names_that_would_lead_elsewhere_are_rejected(name: str) -> None:
    with pytest.raises(Rejected):
        segment(name)


def test_odd_names_are_quoted() -> None:
    assert segment("system:node?a#b c") == "system%3Anode%3Fa%23b%20c"
    assert segment("...") == "..."


def test_queries_leave_out_what_is_empty() -> None:
    assert query_of({"limit": 0, "continue": "", "dryRun": None}) == ""
    assert (
        query_of({"labelSelector": "a=b,c in (d)", "limit": 5})
        == "?labelSelector=a%3Db%2Cc+in+%28d%29&limit=5"
    )
