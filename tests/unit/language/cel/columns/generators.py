"""Random well-typed expressions about a node and a pod, and random facts for them.

`GRAMMAR` has the expressions of each kind, a line each. `<cpu>` stands for any expression of kind
cpu, `$p` for a new variable of a macro over `node.pods` and `$c` over `pod.containers`; `<cpu p>` may
use it, as `@p`. To try more of the language, add a line.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st

from koordpolicy.language.cel.values import Duration

_LOW, _HIGH = -(2**63), 2**63 - 1

GRAMMAR: Mapping[str, str] = {
    "cpu": """
        node.capacity.cpu
        node.allocatable.cpu
        node.usage.total.cpu
        node.usage.prod.cpu
        node.requested.batch.cpu
        pod.request.cpu
        pod.usage.cpu
        @p.usage.cpu
        @p.request.cpu
        @p.limit.cpu
        @c.request.cpu
        cpu("1")
        cpu("0")
        millicores(-7)
        millicores(9223372036854775807)
        millicores(-9223372036854775808)
        (<cpu> + <cpu>)
        (<cpu> - <cpu>)
        (<cpu> * <int>)
        (<cpu> / <int>)
        (<cpu> * <percent>)
        (<cpu> * <double>)
        (<cpu> / <double>)
        (-<cpu>)
        max(<cpu>, <cpu>)
        min(<cpu>, <cpu>, <cpu>)
        (<bool> ? <cpu> : <cpu>)
        node.usage.?total.cpu.orValue(<cpu>)
        node.?capacity.cpu.orValue(<cpu>)
        @p.?usage.cpu.orValue(<cpu>)
        node.usage.?prod.?cpu.optMap(o, o * 2).orValue(<cpu>)
        node.usage.?prod.?cpu.value()
        cel.bind(b, <cpu>, b + b)
        node.pods.map($p, <cpu p>).sum()
        node.pods.map($p, <bool p>, <cpu p>).sum()
        node.pods.filter($p, <bool p>).map($p, <cpu p>).sum()
        node.pods.filter($p, <bool p>).map($p, <cpu p>).max()
        node.pods.map($p, <cpu p>).min()
        node.pods.map($p, <cpu p>).percentile(90)
        node.pods.filter($p, <bool p>).map($p, <cpu p>).percentile(50.5)
        pod.containers.map($c, <cpu c>).sum()
        @p.containers.map($c, <cpu c>).sum()
        pod.containers.map($c, <bool c>, <cpu c>).sum()
        <optcpu>.orValue(<cpu>)
        <optcpu>.value()
    """,
    "int": """
        0
        1
        -1
        3
        1000
        9223372036854775807
        -9223372036854775808
        node.capacity.pods
        pod.priority
        node.pods.size()
        number(<cpu>)
        (<int> + <int>)
        (<int> - <int>)
        (<int> * <int>)
        (<int> / <int>)
        (<int> % <int>)
        (-<int>)
        int(<double>)
        math.abs(<int>)
        math.sign(<int>)
        math.greatest(<int>, <int>)
        size(<string>)
        (<bool> ? <int> : <int>)
        node.pods.filter($p, <bool p>).size()
        @p.numaNodes.filter(n, n < <int>).size()
        @p.numaNodes.sum()
        node.pods.transformList(i$p, $p, i$p).sum()
    """,
    "double": """
        0.0
        -0.0
        0.5
        -2.5
        1e300
        1e-300
        9223372036854775807.0
        (0.0 / 0.0)
        (1.0 / 0.0)
        (<cpu> / <cpu>)
        double(<int>)
        ratio(<percent>)
        (<double> + <double>)
        (<double> - <double>)
        (<double> * <double>)
        (<double> / <double>)
        (-<double>)
        math.ceil(<double>)
        math.floor(<double>)
        math.round(<double>)
        math.trunc(<double>)
        math.abs(<double>)
        math.sign(<double>)
        math.sqrt(<double>)
        max(<double>, <double>)
        min(<double>, <double>)
        (<bool> ? <double> : <double>)
        node.pods.map($p, <double p>).sum()
        node.pods.map($p, <double p>).max()
        node.pods.map($p, <double p>).percentile(95)
        node.pods.filter($p, <bool p>).map($p, <double p>).min()
        pod.containers.map($c, <double c>).sum()
    """,
    "percent": """
        percent(65)
        percent(0)
        percent(-12.5)
        percent(1000000000)
        percent(<int>)
        percent(<double>)
        (<percent> + <percent>)
        (<percent> - <percent>)
        (<percent> * <double>)
        (<percent> * <int>)
    """,
    "string": """
        "a"
        "prod"
        ""
        node.name
        pod.name
        pod.band
        node.labels["pool"]
        node.labels.zone
        node.labels[pod.band]
        node.labels.?pool.orValue(<string>)
        pod.labels["pool"]
        @p.band
        @p.labels["pool"]
        @c.name
        (<bool> ? <string> : <string>)
        <string>.upperAscii()
        <string>.substring(1)
        (<string> + <string>)
        pod.labels[<string>]
        <optstring>.orValue(<string>)
        {"a": <string>, ?"b": <optstring>}["b"]
    """,
    "optstring": """
        optional.none()
        optional.of(<string>)
        optional.ofNonZeroValue(<string>)
        node.labels.?pool
        node.labels[?<string>]
        pod.?name
        @p.labels.?pool
        <optstring>.or(<optstring>)
        (<bool> ? <optstring> : <optstring>)
        (<bool> ? optional.of(<string>) : optional.none())
        <optstring>.optMap(o, <string>)
        <optstring>.optFlatMap(o, <optstring>)
        <optstring>.optFlatMap(o, o == "a" ? optional.none() : optional.of(o))
        cel.bind(b, <optstring>, b.or(<optstring>))
        [?<optstring>, <string>].first()
    """,
    "optcpu": """
        node.usage.?total.cpu
        node.usage.?prod.?cpu
        @p.usage.?cpu
        optional.of(<cpu>)
        <optcpu>.or(<optcpu>)
        (<bool> ? <optcpu> : optional.none())
        <optcpu>.optMap(o, o + <cpu>)
        <optcpu>.optFlatMap(o, <optcpu>)
    """,
    "duration": """
        node.metric.age
        duration("15m")
        duration("9223372036854775807ns")
        (now - node.metric.updatedAt)
        (<duration> + <duration>)
        (<duration> - <duration>)
        max(<duration>, <duration>)
        (<bool> ? <duration> : <duration>)
    """,
    "bool": """
        true
        false
        node.unschedulable
        pod.known
        @p.known
        (pod.band == "prod")
        (@p.band == pod.band)
        has(node.usage.total.cpu)
        has(node.usage)
        has(pod.usage.cpu)
        has(@p.usage.cpu)
        has(node.labels.pool)
        ("pool" in node.labels)
        (<string> in pod.labels)
        node.usage.?prod.cpu.hasValue()
        <optstring>.hasValue()
        <optcpu>.hasValue()
        (<optstring> == <optstring>)
        (<optstring>.orValue("a") == <string>)
        optional.of(<bool>).orValue(<bool>)
        (<cpu> < <cpu>)
        (<cpu> <= <cpu>)
        (<cpu> == <cpu>)
        (<int> > <int>)
        (<int> != <int>)
        (<int> < <double>)
        (<double> >= <int>)
        (<double> < <double>)
        (<double> == <double>)
        (<double> != <double>)
        (<percent> <= <double>)
        (<duration> > <duration>)
        (<string> == <string>)
        (<string> != <string>)
        (<bool> == <bool>)
        (<bool> < <bool>)
        (<bool> && <bool>)
        (<bool> || <bool>)
        (<bool> && <bool> && <bool>)
        (<bool> || <bool> || <bool>)
        (!<bool>)
        (<bool> ? <bool> : <bool>)
        math.isNaN(<double>)
        math.isInf(<double>)
        <string>.startsWith(<string>)
        <string>.contains("a")
        (<string> in ["a", "n0", <string>])
        (<int> in [<int>, 3, -1])
        (<string> in node.pods.map($p, <string p>))
        node.pods.all($p, <bool p>)
        node.pods.exists($p, <bool p>)
        node.pods.exists_one($p, <bool p>)
        node.pods.filter($p, <bool p>).exists($p, <bool p>)
        @p.containers.all($c, <bool c>)
        @p.containers.exists($c, <bool c>)
        (<int> in @p.numaNodes)
        pod.containers.all($c, <bool c>)
        pod.containers.exists($c, <bool c>)
        pod.resources.request.all(k, v, v <= node.resources.allocatable[k] || <bool>)
        pod.labels.exists(k, v, v == node.name || <bool>)
        node.pods.map($p, <string p>).exists(s, s == "a")
    """,
}

Choose: TypeAlias = Callable[[Sequence[str]], str]
"""Picks one of several lines."""

Scope: TypeAlias = tuple[tuple[str, str], ...]
"""Variables of macros with what they stand for."""

_PART = re.compile(r"<(\w+)(?: ([pc]))?>|\$([pc])|@([pc])")
_RESULTS = [kind for kind in sorted(GRAMMAR) if not kind.startswith("opt")]
"""An optional is what expressions use, and no result: not every referee has a form for it."""
_DEEP = re.compile(r"[<$]")
_LINES = {kind: [line.strip() for line in text.strip().splitlines()] for kind, text in GRAMMAR.items()}
_LEAVES = {kind: [line for line in lines if not _DEEP.search(line)] for kind, lines in _LINES.items()}


def _expand(choose: Choose, kind: str, scope: Scope, depth: int) -> str:
    standing = {stands_for for _, stands_for in scope}
    lines = (_LINES if depth > 0 else _LEAVES)[kind]
    line = choose([line for line in lines if set(re.findall("@([pc])", line)) <= standing])
    new = {letter: f"{letter}{len(scope)}" for letter in "pc"}

    def fill(part: re.Match[str]) -> str:
        inner, letter, fresh, known = part.groups()
        if fresh:
            return new[fresh]
        if known:
            return choose([name for name, stands_for in scope if stands_for == known])
        wider = (*scope, (new[letter], letter)) if letter else scope
        return _expand(choose, inner, wider, depth - 1)

    return _PART.sub(fill, line)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3, kind: str | None = None) -> str:
    """An expression of any kind, or of one, of so many levels at most."""
    return write(lambda options: draw(st.sampled_from(options)), depth, kind)


def write(choose: Choose, depth: int = 3, kind: str | None = None) -> str:
    """An expression of any kind, or of one, by whoever chooses."""
    return _expand(choose, kind or choose(_RESULTS), (), depth)


# --- facts -----------------------------------------------------------------------------------------

_AMOUNTS = st.one_of(
    st.integers(-3, 3), st.sampled_from((_LOW, _LOW + 1, _HIGH, _HIGH - 1, 2**53 + 1, 2**62, -(2**62))),
    st.integers(0, 100_000),
)  # fmt: skip
_WORDS = st.sampled_from(("a", "b", "prod", "batch", "", "n0"))
_LABELS = st.dictionaries(st.sampled_from(("pool", "zone", "prod")), _WORDS, max_size=2)


def _facts(paths: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict(paths))


_CPU = {f"{group}.cpu": _AMOUNTS for group in ("request", "usage", "limit")}
_CONTAINERS = st.lists(_facts({"name": _WORDS, "request.cpu": _AMOUNTS}), max_size=3)
RESIDENTS = _facts(
    {
        **_CPU, "band": _WORDS, "known": st.booleans(), "labels": _LABELS, "containers": _CONTAINERS,
        "numaNodes": st.lists(_AMOUNTS, max_size=3),
    }
)  # fmt: skip
_RESOURCES = st.dictionaries(st.sampled_from(("cpu", "memory", "gpu")), _AMOUNTS, max_size=3)

NODES = _facts(
    {
        **{
            f"{group}.cpu": _AMOUNTS
            for group in ("capacity", "allocatable", "usage.total", "usage.prod", "requested.batch")
        },
        "name": _WORDS, "unschedulable": st.booleans(), "labels": _LABELS, "capacity.pods": _AMOUNTS,
        "resources.allocatable": _RESOURCES, "pods": st.lists(RESIDENTS, max_size=3),
        "metric.age": st.integers(_LOW, _HIGH).map(Duration),
    }
)  # fmt: skip
PODS = _facts(
    {
        **_CPU, "name": _WORDS, "band": _WORDS, "known": st.booleans(), "labels": _LABELS, "priority": _AMOUNTS,
        "resources.request": _RESOURCES,
        "containers": _CONTAINERS,
    }
)  # fmt: skip
