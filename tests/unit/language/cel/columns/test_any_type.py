"""Values whose type only run time knows (dyn, null beside times): one meaning in rows, in columns, bound and folded."""

from typing import Any

import pytest

from tests.unit.language.cel.columns.support import assert_same, table_of

ROWS: tuple[dict[str, Any], ...] = (
    {"name": "a", "labels": {"until": "2999-12-31T00:00:00Z"}, "capacity.cpu": 4000, "metric.age": 5},
    {"name": "b", "labels": {"until": "0001-01-01T00:00:00Z"}},
    {"name": "c", "labels": {"until": "2020-01-01T00:00:00Z"}},
    {"name": "d", "labels": {"until": "yesterday"}},
    {"name": "e", "labels": {}},
    *({"name": f"n{at}", "labels": {"until": "2024-01-01T00:00:00Z"}} for at in range(4)),
)
PODS: tuple[dict[str, Any], ...] = ({"labels": {"until": "2999-12-31T00:00:00Z"}}, {"labels": {}})

NULL_OR = '(node.name == "a" ? null : now)'
UNTIL = "timestamp(node.labels.until)"
TEXTS = f"""
{NULL_OR} == now
{NULL_OR} == null
{NULL_OR} < now
{NULL_OR} < now || true
{NULL_OR} - now == duration("0s") || node.name == "a"
{NULL_OR}
[{NULL_OR}, now].size()
[null, now][0] == now
[now, null].exists(t, t == now)
[now, null].all(t, t < now) || true
optional.of({NULL_OR}).orValue(now) == now
(node.name == "a" ? null : duration("1s")) == duration("1s")
(node.name == "a" ? null : node.pods[0]) == null
(node.name == "a" ? null : node.pods[0]).known || true
has((node.name == "a" ? null : node.pods[0]).known) || true
dyn(node.name)
dyn(node.capacity.cpu)
dyn(node.name == "a")
dyn(now)
dyn(1)
node.labels.?until.orValue(dyn(3))
node.labels.?until.orValue(dyn(3)) == 3
dyn(node.labels).?until.orValue(3) == 3
optional.of(dyn(node.name)).orValue(3) == "a"
node.labels.?until.optMap(u, dyn(u)).orValue(3) == 3
[dyn(node.name), dyn(3)][1] == 3
max(dyn(node.capacity.cpu), 3) == 3
(node.name == "a" ? dyn(node.name) : dyn(3)) == 3
dyn(node.name) + 1 == 2 || true
dyn(node.name) < 3 || true
dyn(node.name).size() == 1
dyn(node.name).upperAscii() == "A"
dyn(node.capacity.cpu) + 1
(node.name == "a" ? dyn(1) : dyn("x")) == 1
(node.name == "a" ? dyn(true) : dyn("x")) && node.name != "z"
(node.name == "a" ? dyn(true) : dyn("x")) || node.name != "z"
(node.name == "a" ? dyn(true) : dyn("x")) ? 1 : 2
!(node.name == "a" ? dyn(true) : dyn("x")) || node.name == "b"
[dyn(node.name), 1, true].exists(v, v == "a")
[dyn(node.name), 1].all(v, v)
{{"a": dyn(node.name)}}["a"] == "a"
dyn(node.labels)["until"] == pod.labels.until
dyn(node.labels).until.startsWith("2")
cel.bind(x, dyn(node.name), x == "a" ? x : 3) == "a"
{UNTIL} > now
{UNTIL} > timestamp(pod.labels.until)
{UNTIL} == timestamp(pod.labels.until)
{UNTIL} - now > duration("1h")
{UNTIL} + duration("2562047h") > now
{UNTIL} - duration("2562047h") < now
now - {UNTIL} > duration("1h")
{UNTIL}
{UNTIL}.getFullYear()
{UNTIL} in [now, timestamp(pod.labels.until)]
{UNTIL} in [now, now, now, now, now, timestamp(pod.labels.until)]
[{UNTIL}, now].max() == {UNTIL}
(node.name == "c" ? {UNTIL} : now) < now
node.labels.?until.optMap(u, timestamp(u)).orValue(now) > now
duration("2562047h") + (now - {UNTIL}) > duration("1h")
int({UNTIL}) > 0
double(node.labels.?until.orValue("1e999")) > 1.0
int(double(pod.labels.?x.orValue("1e999"))) > 1
int(double(node.labels.?x.orValue("1e999"))) > 1
quantity(node.name == "a" ? "9e999" : "1").asApproximateFloat() > 0.5
quantity(node.labels.?x.orValue("9e999")).asInteger() > 0
""".strip().splitlines()


@pytest.mark.parametrize("text", TEXTS)
def test_columns_agree_with_rows(text: str) -> None:
    for pod in PODS:
        assert_same(text, table_of(ROWS), pod)
        assert_same(text, table_of(ROWS[1:]), pod)
