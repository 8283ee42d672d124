"""Who has to go: budgets, reprieve, room; against what the words say, worked out naively."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.mechanism.eviction import Room, Victims, candidates_to_find, reprieve, violating
from koordpolicy.model.disruption import Budget
from koordpolicy.model.labels import read_selector
from koordpolicy.model.pod import Pod


def budget(name: str, allowed: int, *disrupted: str, app: str = "web") -> Budget:
    return Budget(
        "default", name, read_selector({"matchLabels": {"app": app}}), allowed, frozenset(disrupted)
    )


def pods(*names: str, app: str = "web") -> list[Pod]:
    return [Pod(name, labels={"app": app}) for name in names]


def test_each_pod_uses_a_budget_up() -> None:
    assert violating(pods("a", "b", "c"), [budget("one", 2)]) == [False, False, True]
    assert violating(pods("a", "b", "c"), [budget("one", 1, "a")]) == [False, False, True]
    assert violating(pods("a", "b"), [budget("one", 2), budget("none", 0)]) == [True, True]
    assert violating([Pod("a")], [budget("none", 0)]) == [False], "a pod without labels is under no budget"


def test_budgets_are_kept_before_importance() -> None:
    def room_for_one(kept: list[str]) -> Any:
        def stays(name: str) -> bool:
            if kept:
                return False
            kept.append(name)
            return True

        return stays

    assert reprieve("abc", [False, False, True], room_for_one([])) == Victims(("a", "b"), 0)
    assert reprieve("abc", [False, False, False], room_for_one([])) == Victims(("b", "c"), 0)
    assert reprieve("abc", [True, False, True], room_for_one([])) == Victims(("b", "c"), 1)


def test_how_many_nodes_are_compared() -> None:
    assert [candidates_to_find(n, 10.0, 100) for n in (50, 500, 2815)] == [50, 100, 281]
    assert candidates_to_find(10, 100.0, 1) == 10
    assert candidates_to_find(1000, 0.0, 1) == 1


PODS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8)


@given(
    free=st.integers(0, 8), wanted=st.integers(0, 8), pods=PODS, breaks=st.lists(st.booleans(), min_size=8)
)
def test_nobody_goes_in_vain(free: int, wanted: int, pods: list[tuple[int, int]], breaks: list[bool]) -> None:
    total = {"cpu": free + sum(cpu for cpu, _ in pods), "memory": free + sum(memory for _, memory in pods)}
    need = {"cpu": wanted, "memory": wanted}
    room = Room(need, total)
    names = range(len(pods))
    if not room.fits:
        assert any(total[name] < need[name] for name in need)
        return
    takes = {at: {"cpu": cpu, "memory": memory} for at, (cpu, memory) in enumerate(pods)}
    found = reprieve(names, breaks[: len(pods)], lambda at: room.stays(takes[at]))

    def fits(gone: frozenset[int]) -> bool:
        stay = [takes[at] for at in names if at not in gone]
        return all(total[name] - sum(one[name] for one in stay) >= need[name] for name in need)

    gone = frozenset(found.keys)
    assert fits(gone)
    assert not any(fits(gone - {at}) for at in gone), "each of them is needed"
    assert list(found.keys) == sorted(found.keys), "the most important first"
    assert found.violations == sum(breaks[at] for at in gone)
