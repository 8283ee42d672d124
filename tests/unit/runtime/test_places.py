"""Which rule fails, and where it stands."""

import pytest

from koordpolicy.runtime.reports.places import FailingRule, failing_rule
from tests.vectors.policies import document, graph

BATCH = {"resource": "batch"}
PLAIN = {"cpu": "1", "memory": "1Gi", "zone": {"cpu": "1", "memory": "1Gi"}}
MUCH = {**PLAIN, "cpu": {"cel": "node.capacity.cpu * 1000000000"}}
ZONES = {**PLAIN, "zone": {"cpu": "1", "memory": {"cel": "zone.allocatable.memory * 1000000000000"}}}
NODE = {"capacity.cpu": 64_000_000_000}
ZONE = {"allocatable.memory": 2**40}


@pytest.mark.parametrize(
    ("spec", "roots", "field"),
    [
        (MUCH, {"node": NODE}, "cpu"),
        (MUCH, {"node": {"capacity.cpu": 4000}}, ""),
        (ZONES, {"node": NODE, "zone": ZONE}, "zone.memory"),
        (ZONES, {"node": NODE}, ""),
    ],
    ids=["overflow", "none", "of a zone", "no zone to ask about"],
)
def test_the_field_that_fails_is_told_with_its_place(
    spec: dict[str, object], roots: dict[str, object], field: str
) -> None:
    made = graph(document("Overcommit", "mine", {**BATCH, **spec}))
    found = failing_rule(made, "Overcommit/batch", {"now": None, "cluster": {}, **roots})
    if not field:
        assert found.field not in {"cpu", "zone.memory"}
        return
    assert found.field == field
    assert found.place.count(":") == 2


def test_a_target_that_nobody_speaks_of_has_no_rule_that_fails() -> None:
    assert failing_rule(graph(), "Overcommit/none", {}) == FailingRule()
