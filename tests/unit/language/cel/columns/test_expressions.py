"""Column programs give, row by row, what row programs give."""

from typing import Any

import numpy as np
import pytest

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns import compile_columns
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.values import Duration, Timestamp
from tests.unit.language.cel.columns.support import (
    NOW,
    ROOT_NAMES,
    assert_same,
    columns,
    same_answer,
    same_value,
    small,
    table_of,
    typed,
)

BIG = 2**63 - 1
ROWS: tuple[dict[str, Any], ...] = (
    {
        "name": "n0", "unschedulable": False, "labels": {"pool": "a", "x": "1"},
        "capacity.cpu": 96_000, "allocatable.cpu": 90_000, "usage.total.cpu": 1_000, "usage.prod.cpu": 5,
        "capacity.memory": 2**40, "resources.free": {"cpu": 5}, "resources.requested": {"cpu": 7, "x/gpu": 2},
        "metric.age": Duration(60 * 10**9), "metric.updatedAt": Timestamp(NOW.ns - 60 * 10**9),
    },
    {
        "name": "n1", "unschedulable": True, "labels": {}, "annotations": {"pool": "b"},
        "capacity.cpu": 2**62, "allocatable.cpu": 0, "resources.requested": {},
        "metric.age": Duration(-(2**63)), "metric.updatedAt": Timestamp(-(2**63)),
    },
    {
        "name": "gpu-2", "unschedulable": False, "labels": {"pool": "b"}, "usage.total.cpu": BIG,
        "capacity.cpu": -5, "allocatable.cpu": 10, "capacity.memory": -(2**63), "allocatable.memory": -1,
    },
    {"name": "n3", "metric.age": Duration(20 * 60 * 10**9)},
)  # fmt: skip
POD = {
    "request.cpu": 500, "band": "batch", "qos": "BE", "labels": {"app": "x", "n0": "y"}, "nodeName": "n0",
    "priority": 0, "resources.request": {"cpu": 3, "x/gpu": 1},
}  # fmt: skip

SMALL_ROWS = tuple(small(row) for row in ROWS)
SMALL_POD = small(POD)

COLUMN_WISE = """
node.capacity.cpu
node.capacity.cpu + node.allocatable.cpu
node.capacity.cpu + node.capacity.cpu
node.capacity.memory - node.allocatable.memory
node.capacity.memory - memory("1")
node.capacity.memory * 3
node.capacity.cpu * 4
node.capacity.cpu * pod.priority
-node.capacity.cpu
-node.capacity.memory
node.capacity.memory / -1
node.capacity.cpu / 7
node.capacity.cpu / -7
node.capacity.memory / node.allocatable.memory
number(node.capacity.cpu) / number(node.allocatable.cpu)
number(node.capacity.cpu) % 7
number(node.capacity.memory) % number(node.allocatable.memory)
number(node.allocatable.cpu) / pod.priority
number(node.allocatable.cpu) % pod.priority
100 / number(node.allocatable.cpu)
double(node.capacity.cpu)
1.0 / double(number(node.allocatable.cpu) * -1 * 0)
1.0 / (double(number(node.capacity.cpu) / -100000))
double(number(node.capacity.cpu) / 100000 + number(node.allocatable.cpu) * 0) * -1.0
(node.capacity.cpu > millicores(0) ? number(node.capacity.cpu) / 7 * 3 : -1) % 5
max(number(node.capacity.cpu) * 2, number(node.allocatable.cpu), 3) / 2
[number(node.capacity.cpu) / 3, number(node.allocatable.cpu)].sum() / 2
[number(node.capacity.cpu) / 3, number(node.allocatable.cpu)].max()
number(node.capacity.cpu) / 3 in [number(node.allocatable.cpu) * 2, 32000]
[number(node.capacity.cpu) * 2, 7][0]
number(node.capacity.cpu) * 2 == number(node.allocatable.cpu) / 3
number(node.capacity.cpu) - 1 != number(node.allocatable.cpu)
math.abs(number(node.capacity.cpu) - 5)
-(number(node.capacity.cpu) * 3)
node.usage.?total.cpu.orValue(cpu("1")) + node.capacity.cpu
(pod.band == "batch" ? number(node.capacity.cpu) : 3) * 2
(pod.band == "prod" ? number(node.capacity.cpu) : 3) * 2
int(double(node.capacity.memory))
int(double(node.usage.total.cpu))
math.abs(number(node.capacity.memory))
math.abs(number(node.capacity.cpu))
math.sign(number(node.capacity.cpu))
math.ceil(double(node.capacity.cpu) / 7.0)
math.floor(double(node.capacity.cpu) / 7.0)
math.round(double(node.capacity.cpu) / 2.0)
math.trunc(double(node.capacity.cpu) / 7.0)
math.round(node.usage.total.cpu / node.capacity.cpu * 100.0)
math.round(double(node.capacity.cpu) * -0.5)
math.sqrt(double(node.capacity.cpu))
math.isNaN(math.sqrt(double(node.capacity.cpu)))
math.isInf(1.0 / double(node.allocatable.cpu))
math.isFinite(1.0 / double(node.allocatable.cpu))
node.capacity.cpu * percent(65) - node.usage.total.cpu
node.capacity.memory * percent(300)
node.capacity.cpu * 0.333
node.capacity.cpu * (1.0 / 0.0)
node.capacity.cpu * (double(node.allocatable.cpu) / 3.0)
node.capacity.cpu / 0.3
node.capacity.cpu / double(node.allocatable.cpu)
node.capacity.cpu / node.allocatable.cpu
node.usage.total.cpu / node.allocatable.cpu <= percent(65)
percent(number(node.allocatable.cpu)) + percent(1)
ratio(percent(number(node.allocatable.cpu)))
percent(double(node.capacity.cpu) / double(node.allocatable.cpu) * 0.0)
(1.0 - (node.usage.total.cpu + pod.request.cpu) / node.allocatable.cpu) * 100.0
pod.request.memory + node.capacity.memory
pod.band == "batch" && node.usage.total.cpu > pod.request.cpu
pod.band != "batch" && node.usage.total.cpu > pod.request.cpu
pod.band != "batch" || node.usage.total.cpu > pod.request.cpu
pod.ownedByDaemonSet || node.usage.total.cpu > pod.request.cpu
pod.ownedByDaemonSet && node.usage.total.cpu > pod.request.cpu
pod.active && pod.ownedByDaemonSet || node.unschedulable
node.usage.total.cpu > pod.request.cpu || node.allocatable.cpu > 0
node.usage.total.cpu > pod.request.cpu && node.allocatable.cpu > 0 && node.capacity.cpu > 0
!node.unschedulable && node.capacity.cpu / node.allocatable.cpu > 0.5
node.unschedulable || pod.band == "prod"
node.unschedulable == (pod.band == "prod")
node.unschedulable < (pod.band == "batch")
node.allocatable.cpu > 0 ? node.capacity.cpu / node.allocatable.cpu : 0.0
node.allocatable.cpu > 0 ? node.capacity.cpu * 3 : node.capacity.cpu + pod.request.memory * 0 / memory("1") * cpu("1")
node.usage.total.cpu > 0 ? node.name : node.labels["pool"]
node.usage.total.cpu > 0 ? node.name : "none"
node.usage.total.cpu > 0 ? node.unschedulable : node.usage.prod.cpu > millicores(1)
node.capacity.cpu == millicores(-7) ? node.capacity.cpu * 5 + node.usage.total.cpu : node.capacity.cpu
pod.labels["app"] == "x" ? node.capacity.cpu : node.usage.total.cpu
pod.labels["none"] == "x" ? node.capacity.cpu : node.usage.total.cpu
pod.band == "prod" ? cpu("3") : node.usage.total.cpu
pod.band == "batch" ? cpu("3") : node.usage.total.cpu
max(node.capacity.cpu, node.allocatable.cpu, cpu("1"))
min(node.capacity.cpu, pod.request.cpu)
min(double(node.capacity.cpu), math.sqrt(double(node.capacity.cpu)))
max(math.sqrt(double(node.capacity.cpu)), 0.5)
math.greatest(number(node.capacity.cpu), 3, 5)
max(node.metric.age, duration("1m"))
node.labels["pool"] == "a"
node.labels["pool"] == node.annotations["pool"]
"pool" in node.labels && node.labels["pool"] == "a"
node.labels.pool
has(node.labels.pool) && node.labels.pool != "b"
node.labels[?"pool"].orValue("none")
node.labels[pod.labels["app"]]
node.labels[pod.labels["zz"]]
pod.labels["zz"] in node.labels
node.labels.?pool.hasValue()
node.labels.?pool.value()
["x", "pool"].filter(k, node.labels[k] == "1").size() == 0
["x", "pool"].filter(k, k in node.labels).size() > 0
["x", "pool"].filter(k, k in node.labels && node.labels[k] == "b").size() != 0
["x", "pool"].filter(k, k in node.labels).size() <= 0
size(["x", "pool", "y"].filter(k, k in node.labels)) >= 1
size(["x", "pool", "y"].filter(k, k in node.labels)) < 2
["cpu", "x/gpu"].filter(k, node.resources.requested[?k].orValue(amount(0)) > amount(3)).size() == 0
node.resources.requested["cpu"]
node.resources.requested[pod.band]
node.resources.requested[?"x/gpu"].orValue(amount(0)) + amount(1)
node.usage.?total.cpu.orValue(cpu("1"))
node.usage.?total.cpu.orValue(node.usage.prod.cpu)
node.usage.?total.?cpu.optMap(x, x * 2).orValue(cpu("3"))
node.usage.?total.?cpu.optMap(x, cpu("1")).orValue(cpu("3"))
node.usage.?total.cpu.hasValue() ? node.name : pod.band
has(node.usage.total.cpu)
has(node.usage.total)
has(node.usage)
has(node.labels)
has(node.pods)
node.name.startsWith("gpu")
node.name.endsWith(pod.qos)
node.name.matches("n[0-2]")
node.name.size()
node.name.upperAscii()
node.name.substring(4)
node.name in ["n0", "n3"]
node.name in ["a", "b", "c", "d", "n3", "n1"]
node.name in pod.labels
number(node.capacity.cpu) in [96000, -5]
number(node.capacity.cpu) in [96000]
dyn(node.capacity.cpu) == dyn(1) || true
node.name == pod.nodeName
node.name != pod.nodeName
node.capacity.cpu != node.allocatable.cpu
number(node.capacity.cpu) < 96000.5
number(node.usage.total.cpu) < 9223372036854775807.0
double(node.capacity.cpu) >= number(node.capacity.cpu)
node.metric.age > duration("15m")
node.metric.age + duration("15m")
node.metric.age - duration("15m")
now - node.metric.updatedAt
now - node.metric.updatedAt > duration("5m")
now - node.metric.updatedAt >= duration("1m") || has(node.usage.total.cpu)
node.metric.updatedAt > timestamp("2020-01-01T00:00:00Z")
int(node.metric.updatedAt)
pod.request.memory
pod.labels
pod.band
cpu("4")
now
""".strip().splitlines()

ROW_WISE = """
node.name + "x"
string(number(node.capacity.cpu))
node.labels
node.labels["pool"] + "x" == "ax" || node.unschedulable
node.unschedulable && node.name + "a" == "n1a"
node.unschedulable || node.name + "a" == "n0a" && node.name + "b" == "n0b"
node.unschedulable ? node.name + "a" : node.labels["pool"] + "b"
pod.labels[node.name]
node.metric.updatedAt - duration("1h")
node.metric.updatedAt < timestamp("9999-01-01T00:00:00Z")
node.usage.?total.cpu.or(node.usage.?prod.cpu).orValue(cpu("1"))
node.usage.?total.cpu
node.pods
[node.name]
{"a": node.name}
""".strip().splitlines()


@pytest.mark.parametrize("text", COLUMN_WISE)
def test_columns_agree_with_rows(text: str) -> None:
    assert_same(text, table_of(ROWS), POD)


@pytest.mark.parametrize("text", [*COLUMN_WISE, *ROW_WISE])
def test_numbers_that_doubles_hold_agree_too(text: str) -> None:
    program, by_row = columns(text), compile_row(ROOT_NAMES, typed(text))
    assert_same(text, table_of(SMALL_ROWS), SMALL_POD, (program, by_row))
    assert_same(text, table_of(ROWS), POD, (program, by_row))  # and then some that they do not
    assert_same(text, table_of(SMALL_ROWS), SMALL_POD, (program, by_row))


@pytest.mark.parametrize("text", [text for text in COLUMN_WISE if "dyn(" not in text])
def test_nothing_is_left_to_row_programs(text: str) -> None:
    assert columns(text).fallback == ()


@pytest.mark.parametrize("text", ROW_WISE)
def test_what_has_no_column_form_agrees_too(text: str) -> None:
    assert_same(text, table_of(ROWS), POD)


@pytest.mark.parametrize("text", [*COLUMN_WISE, *ROW_WISE])
def test_an_empty_table_has_empty_results(text: str) -> None:
    assert len(columns(text).call(table_of(()), {"pod": POD, "now": NOW})) == 0


def test_many_outputs_of_one_program_agree_each() -> None:
    trees = {text: typed(text) for text in (*COLUMN_WISE, *ROW_WISE)}
    program = compile_columns(trees, "node", ROOT_NAMES)
    by_row = compile_row(ROOT_NAMES, trees)
    table = table_of(ROWS)
    results = program.call_all(table, {"pod": POD, "now": NOW})
    bound = program.bound({"pod": POD, "now": NOW})
    assert program.outputs == tuple(trees)
    for at in range(len(table)):
        expected = by_row.call(table.row(at), POD, NOW)
        for answer, (name, value) in zip(bound.ask(table.row(at)), expected.items(), strict=True):
            assert same_answer(answer, ("error" if isinstance(value, CelError) else "value", value)), name
        for text, result in results.items():
            error = result.error(at)
            if isinstance(expected[text], CelError):
                assert error is not None, text  # which of several errors shows is not defined
            else:
                assert error is None and same_value(result.value(at), expected[text]), text


@pytest.mark.parametrize("text", COLUMN_WISE)
def test_results_outlive_later_calls_and_changes(text: str) -> None:
    program, table = columns(text), table_of(ROWS)
    first = program.call(table, {"pod": POD, "now": NOW})
    values = first.values.copy()
    errors = np.zeros(len(table), np.bool_) if first.errors is None else first.errors.copy()
    for name in table.names:
        table.put(name, {"name": "other", "capacity.cpu": 1, "labels": {"pool": "z"}})
    program.call(table, {"pod": {}, "now": Timestamp(0)})
    assert np.array_equal(first.values, values, equal_nan=values.dtype == np.float64)
    assert np.array_equal(errors, errors if first.errors is None else first.errors)


@pytest.mark.parametrize("picked", [[2, 0], [], [3, 2, 1, 0] * 5])
@pytest.mark.parametrize("text", [*COLUMN_WISE, *ROW_WISE])
def test_some_rows_are_like_all(text: str, picked: list[int]) -> None:
    program, table = columns(text), table_of(ROWS)
    everything = program.call(table, {"pod": POD, "now": NOW})
    some = program.call(table, {"pod": POD, "now": NOW}, rows=np.array(picked, np.int64))
    assert len(some) == len(picked)
    for at, row in enumerate(picked):
        assert (some.error(at) is None) == (everything.error(row) is None)
        if some.error(at) is None:
            assert same_value(some.value(at), everything.value(row))
