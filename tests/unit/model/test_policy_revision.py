import pytest

from koordpolicy.model.policy_revision import (
    Instance,
    InstanceState,
    LaggingAgent,
    LaggingState,
    PolicyRevision,
    RevisionAgents,
    RevisionStatus,
    RolloutState,
    ShownDiagnostic,
    StatusCondition,
    from_json,
    revision_name,
    to_json,
)
from koordpolicy.model.reading import ObjectError

WHOLE = PolicyRevision(
    "shop",
    "0123456789abcdef0123456789abcdef01234567",
    "d" * 64,
    "0123456789abcdef0123456789abcdef01234567",
    "https://git.example/shop",
    RevisionStatus(
        0,
        (StatusCondition("Ready", "True", "Succeeded", "", "2026-01-01T00:00:00Z", 1),),
        (ShownDiagnostic("warning", "KP308", "unused", "a.yaml", 3, 9),),
        1,
        0,
        (
            Instance(
                "agent-1", "agent", InstanceState.ACTIVE, "node-1", "2026-01-01T00:00:00Z", ("patch nodes",)
            ),
        ),
        RolloutState("Shadow", 0, "comparing"),
        RevisionAgents(
            1, 2, 3, 4, 5, 6, 21, (LaggingAgent("n", LaggingState.REJECTED, "r", "CompileFailed", "why"),)
        ),
    ),
)


@pytest.mark.parametrize("value", [WHOLE, PolicyRevision("shop", "sha256:" + "d" * 64, "d" * 64)])
def test_reads_what_it_writes(value: PolicyRevision) -> None:
    assert from_json(to_json(value)) == value


def test_empty_fields_are_not_written() -> None:
    written = to_json(PolicyRevision("shop", "r", "d" * 64))
    assert set(written["spec"]) == {"bundle", "revision", "digest"}
    assert "status" not in written


def test_zero_is_written() -> None:
    status = to_json(WHOLE)["status"]
    assert status["observedGeneration"] == 0
    assert status["rules"] == {"total": 0}
    assert status["rollout"]["step"] == 0


def test_a_status_shows_twenty_diagnostics() -> None:
    many = tuple(ShownDiagnostic("error", "KP204", f"number {number}") for number in range(30))
    status = to_json(PolicyRevision("shop", "r", "d", status=RevisionStatus(diagnostics=many)))["status"]
    assert [one["message"] for one in status["diagnostics"]] == [f"number {number}" for number in range(20)]


@pytest.mark.parametrize(
    ("bundle", "of", "name"),
    [
        ("shop", "0123456789abcdef01234567", "shop-0123456789ab"),
        ("shop", "sha256:" + "ABCDEF" * 5, "shop-abcdefabcdef"),
        ("My Shop!", "0123456789ab", "my-shop-0123456789ab"),
        ("", "0123456789ab", "bundle-0123456789ab"),
        ("a" * 300, "0123456789ab", "a" * 240 + "-0123456789ab"),
    ],
)
def test_names_are_names_of_objects(bundle: str, of: str, name: str) -> None:
    assert revision_name(bundle, of) == name


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        ({"spec": []}, "spec"),
        ({"spec": {"bundle": 1}}, "bundle"),
        ({"spec": {}, "status": {"instances": [{"state": "Lost"}]}}, "Lost"),
        ({"spec": {}, "status": {"conditions": "none"}}, "conditions"),
        ({"spec": {}, "status": {"agents": {"lagging": [{"state": "Lost"}]}}}, "Lost"),
    ],
)
def test_a_wrong_shape_is_an_error_with_its_place(obj: dict[str, object], words: str) -> None:
    with pytest.raises(ObjectError, match=words):
        from_json(obj)
