"""Which nodes go ahead."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.labels import parse_selector
from koordpolicy.runtime.rollout.canary import goes_ahead, node_parts, place_of, pod_goes_ahead
from koordpolicy.runtime.rollout.plan import RolloutStep

NAMES = st.text(min_size=1, max_size=40)


def ahead(steps: list[RolloutStep], node: str, labels: dict[str, str]) -> bool:
    return goes_ahead(node_parts(steps), node, labels)


def of_share(share: float) -> RolloutStep:
    return RolloutStep("s", 0, share=share)


@given(NAMES, st.floats(0, 100), st.floats(0, 100))
def test_who_is_among_few_is_among_more(node: str, one: float, other: float) -> None:
    few, more = sorted((one, other))
    assert not ahead([of_share(few)], node, {}) or ahead([of_share(more)], node, {})


@given(NAMES)
def test_the_ends_are_none_and_all(node: str) -> None:
    assert not ahead([of_share(0.0)], node, {})
    assert ahead([of_share(100.0)], node, {})
    assert 0.0 <= place_of(node) <= 100.0


def test_places_never_change() -> None:
    assert [round(place_of(name), 3) for name in ("node-1", "node-2", "ip-10-0-0-1")] == [
        20.934,
        9.17,
        42.015,
    ]


def test_a_share_is_about_that_share() -> None:
    nodes = [f"node-{number}" for number in range(20_000)]
    for share in (1.0, 5.0, 25.0, 50.0):
        found = sum(ahead([of_share(share)], node, {}) for node in nodes)
        assert abs(found / len(nodes) * 100 - share) < 1.0


def test_a_step_without_canary_lets_nobody_ahead() -> None:
    assert not ahead([RolloutStep("s", 0, sample=100.0)], "node-1", {})


def test_labels_and_share_must_both_hold() -> None:
    pool = parse_selector("pool=web")
    assert ahead([RolloutStep("s", 0, nodes=pool)], "node-2", {"pool": "web"})
    assert not ahead([RolloutStep("s", 0, nodes=pool)], "node-2", {"pool": "db"})
    both = RolloutStep("s", 0, nodes=pool, share=15.0)
    assert ahead([both], "node-2", {"pool": "web"})
    assert not ahead([both], "node-1", {"pool": "web"})
    assert not ahead([both], "node-2", {})


def test_who_is_ahead_stays_ahead() -> None:
    pool = RolloutStep("pool", 0, nodes=parse_selector("pool=web"))
    few = RolloutStep("few", 0, share=15.0)
    assert ahead([pool, few], "node-1", {"pool": "web"})
    assert ahead([pool, few], "node-2", {})
    assert not ahead([pool, few], "node-1", {})


def test_a_share_alone_is_of_nodes_and_of_pods_and_a_selector_of_one_leaves_the_other() -> None:
    labels, one = {"team": "web"}, parse_selector("team=web")
    cases = {
        "share": (RolloutStep("s", 0, share=100.0), True, True),
        "nodes": (RolloutStep("s", 0, nodes=one), True, False),
        "pods": (RolloutStep("s", 0, pods=one), False, True),
        "nodes of a share": (RolloutStep("s", 0, nodes=one, share=100.0), True, False),
        "pods of a share": (RolloutStep("s", 0, pods=one, share=100.0), False, True),
        "both": (RolloutStep("s", 0, nodes=one, pods=one, share=100.0), True, True),
        "none": (RolloutStep("s", 0, share=0.0), False, False),
        "others": (RolloutStep("s", 0, pods=parse_selector("team=db")), False, False),
    }
    for name, (step, node, pod) in cases.items():
        said = ahead([step], "node-1", labels), pod_goes_ahead([step], "default/p", labels)
        assert said == (node, pod), name


def test_a_share_of_pods_is_about_that_share_and_grows() -> None:
    pods = [f"default/p-{number}" for number in range(5_000)]
    few, more = ({pod for pod in pods if pod_goes_ahead([of_share(share)], pod, {})} for share in (5.0, 25.0))
    assert few < more
    assert abs(len(few) / 50 - 5.0) < 1.5
    assert abs(len(more) / 50 - 25.0) < 2.5
