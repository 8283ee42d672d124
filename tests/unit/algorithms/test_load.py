"""The load of a node: any order of events gives the same sums."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.load import AssignedPod, LoadReport, NodeLoad, PodKey, ReportedPod, estimate_end
from koordpolicy.model.metric import AggregatedUsage
from koordpolicy.model.reading import Amounts

KEYS = [("default", name) for name in "abcd"]
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "other"]), st.integers(0, 50))
TIME = st.integers(0, 20)

POD = st.builds(
    AssignedPod, st.sampled_from(KEYS), st.none() | AMOUNTS, st.booleans(), TIME, st.none() | TIME
)
REPORT = st.builds(
    LoadReport,
    TIME,
    st.integers(0, 10),
    st.none() | AMOUNTS,
    AMOUNTS,
    st.lists(
        st.builds(AggregatedUsage, TIME, st.dictionaries(st.sampled_from(["avg", "p95"]), AMOUNTS)),
        max_size=3,
    ).map(tuple),
    st.dictionaries(st.sampled_from(KEYS), st.builds(ReportedPod, AMOUNTS, st.booleans())),
)
EVENT = st.one_of(POD, st.sampled_from(KEYS), st.none() | REPORT)
QUERIES = [(True, "", 0), (False, "", 0), (False, "p95", 0), (False, "avg", 5)]


def answers(load: NodeLoad) -> list[dict[str, int]]:
    return [load.existing(prod=prod, aggregation=name, duration=span) for prod, name, span in QUERIES]


@given(st.lists(EVENT, max_size=12), st.booleans())
def test_pod_by_pod_gives_the_same_as_anew(
    events: list[AssignedPod | PodKey | LoadReport | None], with_system: bool
) -> None:
    kept = NodeLoad(["cpu", "memory"], prod_includes_system=with_system)
    pods: dict[PodKey, AssignedPod] = {}
    report: LoadReport | None = None
    for event in events:
        if isinstance(event, AssignedPod):
            kept.add(event)
            pods[event.key] = event
        elif isinstance(event, tuple):
            kept.remove(event)
            pods.pop(event, None)
        else:
            kept.set_report(event)
            report = event
        anew = NodeLoad(["cpu", "memory"], prod_includes_system=with_system)
        anew.set_report(report)
        for pod in reversed(pods.values()):
            anew.add(pod)
        assert answers(kept) == answers(anew)
        assert kept.empty == (report is None and not pods)
        assert {pod.key for pod in kept.pods} == set(pods)


USED: Amounts = {"cpu": 100}
POD_A = AssignedPod(KEYS[0], {"cpu": 40}, prod=True, since=50)


def report_at(updated_at: int, usage: Amounts | None = None, prod: bool = True) -> LoadReport:
    pods = {} if usage is None else {KEYS[0]: ReportedPod(usage, prod)}
    return LoadReport(updated_at, 10, USED, pods=pods)


def load_of(pod: AssignedPod, report: LoadReport | None, *, prod: bool = False) -> int:
    load = NodeLoad(["cpu"])
    load.add(pod)
    load.set_report(report)
    return load.existing(prod=prod)["cpu"]


def test_a_pod_counts_until_a_whole_interval_shows_it() -> None:
    assert load_of(POD_A, report_at(100)) == 140
    assert load_of(POD_A, report_at(59, {"cpu": 10})) == 130
    assert load_of(POD_A, report_at(60, {"cpu": 10})) == 100
    assert load_of(POD_A, report_at(59, {"cpu": 70})) == 100


def test_an_estimate_can_be_held_longer() -> None:
    held = POD_A._replace(hold_until=90)
    assert load_of(held, report_at(89, {"cpu": 10})) == 130
    assert load_of(held, report_at(90, {"cpu": 10})) == 100


def test_protected_load_counts_pods_that_are_protected_on_both_sides() -> None:
    assert load_of(POD_A, report_at(100, {"cpu": 10}), prod=True) == 10
    assert load_of(POD_A, report_at(59, {"cpu": 10}), prod=True) == 40
    assert load_of(POD_A, report_at(100, {"cpu": 10}, prod=False), prod=True) == 40
    assert load_of(POD_A._replace(prod=False), report_at(100, {"cpu": 10}), prod=True) == 0


def test_without_a_report_nothing_is_computed() -> None:
    assert load_of(POD_A, None) == 0
    assert load_of(POD_A, replace(report_at(100), node_usage=None)) == 40


def test_windows() -> None:
    load = NodeLoad(["cpu"])
    windows = (AggregatedUsage(5, {"p95": {"cpu": 7}}), AggregatedUsage(9, {"p95": {"cpu": 8}, "avg": {}}))
    load.set_report(replace(report_at(100), windows=windows))
    assert load.existing(aggregation="p95")["cpu"] == 8
    assert load.existing(aggregation="p95", duration=5)["cpu"] == 7
    assert load.existing(aggregation="p95", duration=6)["cpu"] == 0
    assert load.existing(aggregation="avg")["cpu"] == 100
    assert load.existing(aggregation="avg", duration=9)["cpu"] == 0


def test_when_an_estimate_ends() -> None:
    assert estimate_end(10, 20, 5, 7) == 27
    assert estimate_end(10, None, 5, 7) == 15
    assert estimate_end(10, 20, 5, 0) == 15
    assert estimate_end(10, 20, None, -1) is None
