"""What is made of a revision before it decides, and what is left to make when reviews come."""

from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.manager.webhooks.preparing import prepare_admission
from koordpolicy.manager.webhooks.profiles import Profiles
from koordpolicy.manager.webhooks.rules import Rules
from tests.vectors.policies import document, graph

NOW = 1_800_000_000 * 10**9


def test_the_first_review_of_a_revision_makes_nothing_that_could_be_made_before() -> None:
    match = {"pods": {"matchLabels": {"app": "spark"}}}
    compiled = graph(
        document("ColocationProfile", "spark", {"match": match, "qosClass": "BE"}),
        document("AdmissionRule", "team", {"match": match, "require": {"cel": "'team' in pod.labels"}}),
    )
    assert not [one for one in compiled.asked if "Profile" in one]
    prepare_admission(compiled, NOW)
    made = set(compiled.asked)
    assert {"ColocationProfile/spark.failurePolicy", "AdmissionRule/team.operations"} <= made
    Profiles(compiled), Rules(compiled)
    for webhook in WEBHOOKS:
        webhook.scope(compiled)
    assert set(compiled.asked) == made
