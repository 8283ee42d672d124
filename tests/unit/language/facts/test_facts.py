"""Facts are declared once, completely, and found by path."""

import pytest

from koordpolicy.language.cel.types import AMOUNT, CPU, DURATION, MEMORY, STRING, Type, map_of, record
from koordpolicy.language.facts import FACTS, ROOTS, Component, Fact, FactTable, Group, Record

ALL = [(record.name, fact) for record in FACTS.records.values() for fact in record.facts]


def records_in(type_: Type) -> set[str]:
    """The records that a type speaks of."""
    own = {type_.record} if type_.name == "record" and type_.record else set()
    return own.union(*(records_in(inner) for inner in type_.params))


@pytest.mark.parametrize(("name", "fact"), ALL, ids=lambda part: part if isinstance(part, str) else part.path)
def test_facts_are_declared_completely(name: str, fact: Fact) -> None:
    assert not fact.meaning[0].islower()
    assert fact.meaning.endswith(".")
    assert "{" not in fact.meaning
    assert fact.suppliers
    assert records_in(fact.type) <= set(FACTS.records)
    assert FACTS.resolve(name, fact.path) is fact
    assert all(step.isidentifier() for step in fact.path.split("."))


def test_roots_are_declared_completely() -> None:
    for name, root in ROOTS.items():
        assert name == root.name
        assert root.suppliers
        assert root.meaning.endswith(".")
        assert records_in(root.type) <= set(FACTS.records)


def test_a_record_of_a_root_has_facts_for_each_supplier() -> None:
    for root in ROOTS.values():
        facts = FACTS.leaves(root.type.record or "")
        missing = {
            one for one in root.suppliers if facts and not any(one in fact.suppliers for fact in facts)
        }
        assert missing == set(), root.name


@pytest.mark.parametrize(
    ("path", "type_"),
    [
        ("capacity.cpu", CPU),
        ("allocatable.batch.cpu", CPU),
        ("free.mid.memory", MEMORY),
        ("usage.p95.memory", MEMORY),
        ("reserved.kubelet.cpu", CPU),
        ("metric.age", DURATION),
        ("resources.capacity", map_of(STRING, AMOUNT)),
        ("pods", Type("list", (record("pod"),))),
    ],
)
def test_types_of_node_facts(path: str, type_: Type) -> None:
    fact = FACTS.resolve("node", path)
    assert isinstance(fact, Fact)
    assert fact.type == type_


def test_paths_lead_to_facts_groups_or_nowhere() -> None:
    assert FACTS.resolve("node", "usage") == Group("node", "usage")
    assert FACTS.resolve("node", "usage.prod") == Group("node", "usage.prod")
    assert FACTS.resolve("node", "") == Group("node", "")
    for path in ("usages", "usage.prod.cpus", "usage.prod.cpu.x", "name.x"):
        assert FACTS.resolve("node", path) is None
    assert FACTS.resolve("nodes", "name") is None
    assert FACTS.record("nodes") is None


def test_children_and_leaves() -> None:
    assert FACTS.children("node", "usage.prod") == ("cpu", "memory")
    assert "capacity" in FACTS.children("node")
    assert FACTS.children("node", "name") == ()
    assert [fact.path for fact in FACTS.leaves("node", "usage.prod")] == [
        "usage.prod.cpu",
        "usage.prod.memory",
    ]
    assert [fact.path for fact in FACTS.leaves("node", "name")] == ["name"]
    assert FACTS.leaves("node", "usage.pro") == ()
    assert FACTS.leaves("nodes") == ()
    record_ = FACTS.record("pod")
    assert record_ is not None
    assert FACTS.leaves("pod") == record_.facts


def fact(path: str) -> Fact:
    return Fact(path, CPU, "A fact.", frozenset(Component))


def test_a_path_has_one_meaning() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        FactTable([Record("r", "", (fact("a.b"), fact("a.b")))])
    with pytest.raises(ValueError, match="both a fact and a group"):
        FactTable([Record("r", "", (fact("a.b"), fact("a")))])


def test_what_may_be_missing_is_measured() -> None:
    measured = [one.path for name, one in ALL if name == "node" and one.path.startswith("usage.")]
    assert measured
    assert all(one.may_be_missing for name, one in ALL if name == "node" and one.path.startswith("usage."))
    assert not any(one.may_be_missing for name, one in ALL if one.path.startswith(("capacity.", "labels")))
