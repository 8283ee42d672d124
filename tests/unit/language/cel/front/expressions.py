"""Random expressions over the names of `world.py`, sound and unsound."""

from hypothesis import strategies as st

_SEEDS = [
    "node", "node.name", "node.capacity.cpu", "node.capacity.memory", "node.pressure", "node.pods", "node.labels",
    "node.usage", "pod", "anything", "broken", "variables.reserve", "parameters.limit", "now", "node.age",
    "1", "0", "2u", "1.5", "'a'", "true", "null", "[]", "{}", "cpu('1')", "percent(5)", "nope", "optional.none()",
]  # fmt: skip
_SHAPES = [
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} % {1}", "{0} < {1}", "{0} == {1}", "{0} in {1}",
    "{0} && {1}", "!({0})", "-({0})", "({0}) ? ({1}) : ({2})", "[{0}, {1}]", "[?{0}]", "{{{0}: {1}}}", "({0})[{1}]",
    "({0})[?{1}]", "({0}).name", "({0}).?usage", "has(({0}).cpu)", "({0}).all(x, {1})", "({0}).map(x, {1})",
    "({0}).map(x, x)", "({0}).filter(x, {1})", "({0}).sortBy(x, {1})", "({0}).transformMap(k, v, {1})",
    "({0}).transformMapEntry(k, v, {{v: {1}}})", "({0}).optMap(x, {1})", "({0}).optFlatMap(x, {1})",
    "cel.bind(x, {0}, {1})", "max({0}, {1})", "size({0})", "({0}).size()", "({0}).sum()", "string({0})",
    "({0}).orValue({1})", "({0}).contains({1})", "twice({0})", "dyn({0})", "type({0})", "math.greatest({0}, {1})",
    "'%s'.format([{0}, {1}])", "({0}).estimated({1})", "duration({0})", "ratio({0})", "percent({0})", "({0}).first()",
]  # fmt: skip


@st.composite
def expressions(draw: st.DrawFn) -> str:
    pool = draw(st.lists(st.sampled_from(_SEEDS), min_size=3, max_size=4))
    for shape in draw(st.lists(st.sampled_from(_SHAPES), max_size=4)):
        parts = [draw(st.sampled_from(pool)) for _ in range(3)]
        pool.append(shape.format(*(f"({part})" for part in parts)))
    return pool[-1]
