"""Macros over list facts, and over lists of the pod's, give what row programs give."""

from typing import Any

import pytest

from tests.unit.language.cel.columns.support import assert_same, columns, table_of

BIG = 2**63 - 1


def resident(cpu: int | None, band: str, **more: Any) -> dict[str, Any]:
    """A pod on a node, as far as the expressions here look at it."""
    facts = {
        "name": f"{band}-{cpu}",
        "band": band,
        "request.cpu": 100,
        "labels": {"app": band},
        "known": True,
        **more,
    }
    return facts if cpu is None else {**facts, "usage.cpu": cpu}


ROWS: tuple[dict[str, Any], ...] = (
    {
        "name": "n0",
        "capacity.cpu": 4000,
        "pods": [resident(100, "prod"), resident(200, "batch", known=False)],
    },
    {"name": "n1", "capacity.cpu": 8000, "pods": []},
    {"name": "n2", "capacity.cpu": 0, "pods": [resident(None, "batch"), resident(5, "prod")]},
    {"name": "n3", "capacity.cpu": 300},
    {"name": "n4", "pods": [resident(BIG, "prod"), resident(1, "prod"), resident(-5, "batch")]},
    {
        "name": "n5",
        "capacity.cpu": 1,
        "pods": [resident(-5, "batch"), resident(1, "x"), resident(BIG, "prod")],
    },
    {"name": "n6", "capacity.cpu": 1, "pods": [resident(7, "free", **{"request.cpu": -3, "labels": {}})]},
    {
        "name": "n8", "capacity.cpu": 200, "pods": [
            resident(
                9, "prod", containers=[{"name": "a", "request.cpu": 7}, {"name": "b"}],
                numaNodes=[1, 0], subPriority=1,
            ),
            resident(8, "batch", containers=[], numaNodes=[], subPriority=3),
            resident(7, "free", containers=[{"name": "free-7", "request.cpu": 300}], numaNodes=[2]),
        ],
    },
    {
        "name": "n9", "capacity.cpu": 400, "pods": [
            resident(
                9, "prod", containers=[{"name": "a", "request.cpu": BIG}, {"name": "b", "request.cpu": 1}],
                numaNodes=[3],
            ),
        ],
    },
    {
        "name": "n7",
        "capacity.cpu": 7000,
        "zones": [{"index": 0, "capacity.cpu": 5}, {"index": 1, "capacity.cpu": 9}],
    },
)  # fmt: skip
POD: dict[str, Any] = {
    "name": "prod-100", "request.cpu": 150, "band": "prod", "labels": {"app": "prod"},
    "resources.request": {"cpu": 100, "x/gpu": 1},
    "containers": [{"name": "a", "request.cpu": 50, "image": "i"}, {"name": "b", "request.cpu": BIG}, {"name": "c"}],
}  # fmt: skip

COLUMN_WISE = """
node.pods.size()
size(node.pods)
node.pods.exists(p, p.usage.cpu > cpu("100m"))
node.pods.all(p, p.usage.cpu > cpu("50m"))
node.pods.all(p, p.band == "prod")
node.pods.exists(p, p.band == pod.band)
node.pods.exists(p, true)
node.pods.all(p, pod.band == "batch")
node.pods.exists(p, node.capacity.cpu > cpu("1"))
node.pods.exists_one(p, p.band == "prod")
node.pods.exists_one(p, p.usage.cpu > cpu("100m"))
node.pods.filter(p, p.band == "batch").size()
node.pods.filter(p, p.usage.cpu > millicores(50)).size()
node.pods.filter(p, p.band == "batch").exists(p, p.usage.cpu > millicores(0))
node.pods.filter(p, p.band != "batch").all(p, p.usage.cpu > millicores(0))
node.pods.map(p, p.usage.cpu).sum()
node.pods.map(p, p.request.cpu).sum()
node.pods.map(p, p.usage.cpu).min()
node.pods.map(p, p.usage.cpu).max()
node.pods.map(p, p.request.cpu).max()
node.pods.map(p, p.usage.cpu).percentile(90)
node.pods.map(p, p.request.cpu).percentile(50)
node.pods.filter(p, p.band == "prod").map(p, p.usage.cpu).percentile(99.9)
node.pods.map(p, math.sqrt(double(p.usage.cpu))).percentile(95)
node.pods.map(p, p.request.cpu).percentile(101)
node.pods.map(p, p.band == "batch", p.usage.cpu).sum()
node.pods.filter(p, p.band == "prod").map(p, p.usage.cpu).sum()
node.pods.filter(p, !p.known || p.band == "prod").map(p, p.usage.cpu).sum() + node.capacity.cpu
node.pods.map(p, double(p.usage.cpu) / double(node.capacity.cpu)).sum()
node.pods.map(p, double(p.usage.cpu) / 3.0).sum()
node.pods.map(p, math.sqrt(double(p.usage.cpu))).max()
node.pods.map(p, math.sqrt(double(p.usage.cpu))).min()
node.pods.map(p, double(p.usage.cpu)).min()
node.pods.map(p, p.usage.cpu - p.request.cpu).max()
node.pods.map(p, 1).sum()
node.pods.map(p, node.capacity.cpu).sum()
node.pods.map(p, pod.request.cpu).max()
node.pods.map(p, p.name).exists(n, n == pod.name)
pod.name in node.pods.map(p, p.name)
node.name in node.pods.map(p, p.name)
node.pods.exists(p, p.labels["app"] == pod.labels["app"])
node.pods.exists(p, "app" in p.labels && p.labels["app"] == pod.labels["app"])
node.pods.exists(p, p.labels.?app.orValue("none") == "none")
node.pods.exists(p, has(p.usage.cpu) && p.usage.cpu > node.capacity.cpu)
node.pods.map(p, has(p.usage.cpu) ? p.usage.cpu : p.request.cpu).sum()
node.pods.map(p, p.usage.?cpu.orValue(p.request.cpu)).max()
node.pods.exists(p, p.name.startsWith("prod"))
node.pods.exists(p, p.band in ["batch", "free"])
node.pods.transformList(i, p, i).sum()
node.pods.exists(i, p, i == 1 && p.band == "prod")
node.pods.all(p, pod.containers.all(c, c.request.cpu > p.request.cpu))
node.pods.exists(p, p.containers.size() > 1)
node.pods.map(p, p.containers.map(c, c.request.cpu).sum()).sum()
node.pods.map(p, p.containers.filter(c, c.name != "a").size()).max()
node.pods.exists(p, p.containers.exists(c, c.request.cpu > p.request.cpu))
node.pods.filter(p, p.containers.all(c, c.request.cpu < node.capacity.cpu)).map(p, p.usage.cpu).sum()
node.pods.exists(p, 1 in p.numaNodes)
node.pods.map(p, p.numaNodes.filter(n, n < node.zones.size()).size()).sum()
node.pods.map(p, p.subPriority in p.numaNodes ? 1 : p.numaNodes.exists(n, n < 2) ? 0 : 5).sum()
node.pods.map(p, p.numaNodes.max()).max()
node.pods.all(p, p.containers.map(c, c.name).exists(n, n == p.name) || pod.name == p.name)
node.pods.exists(p, pod.containers.exists(c, p.containers.exists(d, d.name == c.name)))
node.zones.map(z, z.capacity.cpu).sum() / node.capacity.cpu
node.zones.exists(z, z.capacity.cpu >= pod.request.cpu) || node.pods.exists(p, p.band == "batch")
node.zones.map(z, z.index).max() + node.pods.size()
node.capacity.cpu > cpu("1") ? node.pods.map(p, p.usage.cpu).sum() : cpu("0")
node.pods.all(p, p.band in ["batch", node.name, pod.band])
node.name in ["a", "n0", pod.band]
pod.name in ["a", node.name]
pod.resources.request.all(name, amount, amount <= amount(100))
pod.resources.request.all(name, amount, node.capacity.cpu > cpu("1") || amount > amount(5))
pod.resources.request.exists(name, name == node.name || name == "cpu")
pod.containers.exists(c, c.request.cpu > node.capacity.cpu)
pod.containers.all(c, c.request.cpu < node.capacity.cpu)
pod.containers.all(c, c.image != node.name)
pod.labels.exists(k, v, v == node.name || k in node.labels)
pod.containers.map(c, c.request.cpu + node.capacity.cpu).sum()
pod.containers.map(c, has(c.request.cpu) && c.request.cpu < cpu("1"), c.request.cpu + node.capacity.cpu).sum()
pod.containers.map(c, has(c.request.cpu) && c.request.cpu < node.capacity.cpu, c.request.cpu).sum()
""".strip().splitlines()

ROW_WISE = """
node.pods.sortBy(p, p.usage.cpu).size()
node.pods.exists(p, node.zones.exists(z, z.capacity.cpu > p.usage.cpu))
node.pods.exists(p, p.name + "x" == "prod-100x")
node.pods.exists(p, p.containers.exists(c, node.zones.exists(z, z.capacity.cpu > c.request.cpu)))
node.pods.map(p, p.band).distinct().size()
node.pods.map(p, p.usage.cpu)
node.pods[0].usage.cpu
node.pods.exists(p, node.name + "x" == p.name) || node.name + "y" == "n1y"
pod.containers.filter(c, c.name != node.name).size()
""".strip().splitlines()


@pytest.mark.parametrize("text", COLUMN_WISE)
def test_columns_agree_with_rows(text: str) -> None:
    assert_same(text, table_of(ROWS), POD)


@pytest.mark.parametrize("text", COLUMN_WISE)
def test_nothing_is_left_to_row_programs(text: str) -> None:
    assert columns(text).fallback == ()


@pytest.mark.parametrize("text", ROW_WISE)
def test_what_has_no_column_form_agrees_too(text: str) -> None:
    assert columns(text).fallback != ()
    assert_same(text, table_of(ROWS), POD)


@pytest.mark.parametrize("text", COLUMN_WISE)
def test_lists_that_have_changed(text: str) -> None:
    """Dead segments, moved rows and tables without any row change nothing."""
    table = table_of(ROWS)
    assert_same(text, table, POD)
    table.update("n1", {"pods": [resident(3, "batch"), resident(4, "prod")]})
    table.update("n0", {"pods": []}, absent=["capacity.cpu"])
    table.update(
        "n9", {"pods": [resident(1, "prod", containers=[{"name": "c", "request.cpu": 5}], numaNodes=[0])]}
    )
    table.remove("n2")
    table.update("n6", {}, absent=["pods"])
    assert_same(text, table, POD)
    for name in table.names:
        table.remove(name)
    assert_same(text, table, POD)


def test_arrays_of_elements_are_told_apart_by_type() -> None:
    """Found by comparing random expressions: strings and numbers of one space shared an array."""
    text = 'node.pods.map(p, ("a" in node.pods.map(q, node.labels["x"])), node.capacity.cpu).sum()'
    assert_same(text, table_of(ROWS), POD)
    assert_same(text, table_of([{**row, "labels": {"x": "a"}} for row in ROWS]), POD)
