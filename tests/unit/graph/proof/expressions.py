"""Expressions of all that the solver knows."""

from koordpolicy.graph.compiler import BASE
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import Problem, check
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.facts import ROOTS


def of_text(text: str) -> ir.Node:
    """The typed form of an expression over all facts there are."""
    problems: list[Problem] = []
    environment = BASE.extended({name: root.type for name, root in ROOTS.items()})
    node = check(parse(text), environment, problems, text)
    assert not [one for one in problems if one.code != "KP216"], problems
    return fold(node)


EXPRESSIONS = (
    "node.capacity.cpu + node.free.cpu - node.reserved.cpu",
    "node.capacity.cpu * 3 / 7",
    "number(node.free.cpu) % 7 + number(node.free.cpu) / -3",
    "-number(node.free.cpu)",
    "node.capacity.cpu * percent(65)",
    "node.free.memory * 0.35",
    "node.free.cpu / 0.7",
    "node.free.cpu / node.capacity.cpu",
    "int(node.free.batch.cpu / node.allocatable.batch.cpu * 100.0)",
    "math.round(node.free.cpu / node.capacity.cpu * 100.0)",
    "math.floor(node.amplification.cpu) + math.ceil(node.amplification.cpu) - math.trunc(node.amplification.cpu)",
    "math.isInf(double(pod.subPriority) / 0.0)",
    "math.isNaN(double(pod.subPriority) / double(number(node.free.cpu)))",
    "math.isInf(node.amplification.cpu * 1e300 * 1e300) || math.isNaN(node.amplification.cpu)",
    "math.abs(number(node.free.cpu)) + math.abs(pod.subPriority)",
    "max(node.free.cpu, node.capacity.cpu, cpu('1')) - min(node.free.cpu, node.reserved.cpu)",
    "node.amplification.cpu * 1.5 - 0.1 / node.amplification.cpu",
    "double(node.zones.size()) < node.amplification.cpu",
    "ratio(percent(65)) * double(pod.subPriority)",
    "has(node.usage.total.cpu) && node.usage.total.cpu > cpu('3')",
    "node.usage.total.cpu > cpu('3') || node.usage.system.cpu > cpu('3')",
    "node.usage.total.cpu > cpu('3') && node.capacity.cpu > cpu('10')",
    "has(node.usage.total.cpu) ? node.usage.total.cpu : node.capacity.cpu",
    "node.usage.?total.cpu.orValue(cpu('2'))",
    "node.?usage.total.cpu.or(node.?usage.system.cpu).orValue(cpu('2'))",
    "node.usage.?total.cpu.optMap(c, c + cpu('1')).hasValue()",
    "pod.labels[?'a'].orValue('') == 'b' || 'c' in pod.labels",
    "pod.labels['a'].startsWith('b') && pod.labels.size() > 1",
    "pod.labels[pod.name]",
    "{'a': 1, 'b': 2}[?pod.name].orValue(3) + {'a': 4}[pod.name]",
    "pod.name in ['a', 'b', 'other'] && !pod.namespace.endsWith('b')",
    "pod.name.contains('a') ? pod.name.size() : pod.name.size() + 100",
    "pod.name.matches('^[a-z]+$') || pod.namespace.matches('a|b.')",
    "pod.name < 'b' && pod.name + 'x' != 'ax'",
    "pod.name.lowerAscii() == pod.namespace",
    "now.getHours() * 60 + now.getMinutes() - now.getSeconds()",
    "now.getDayOfWeek() == 0 || now.getMonth() > 3",
    "now - pod.createdAt > duration('90s')",
    "now + duration('90s') < timestamp('2027-01-01T00:00:00Z')",
    "int(now) % 60",
    "(now - pod.createdAt).getSeconds() + (now - pod.createdAt).getHours()",
    "node.metric.age < duration('3m') && node.metric.age + duration('1s') > duration('1m')",
    "node.pods.filter(p, p.active && p.band != 'batch').map(p, p.request.cpu).sum()",
    "node.pods.map(p, has(p.usage.cpu) ? p.usage.cpu : p.request.cpu).sum()",
    "node.pods.map(p, p.usage.cpu).sum()",
    "node.pods.exists(p, p.request.cpu > cpu('4') && p.qos == 'LS')",
    "node.pods.all(p, p.usage.cpu < cpu('4'))",
    "node.pods.exists_one(p, p.active)",
    "node.pods.filter(p, p.active).size() >= 2",
    "node.pods.map(p, p.request.cpu).max() - node.pods.map(p, p.request.cpu).min()",
    "node.pods[0].request.cpu + node.pods[1].request.cpu",
    "1 in pod.numaNodes && pod.numaNodes.filter(n, n < 3).size() == 1",
    "['cpu', 'memory'].map(r, node.resources.capacity[?r].orValue(amount(0))).sum()",
    "['cpu', 'memory'].transformMapEntry(i, r, {r: node.resources.capacity[?r].orValue(amount(0))})",
    "['cpu', 'memory'].filter(r, node.resources.capacity[?r].orValue(amount(0)) > amount(100))",
    "pod.containers.map(c, c.request.cpu).sum() / pod.containers.size()",
    "cel.bind(x, node.capacity.cpu - node.reserved.cpu, x > cpu('1') ? x : cpu('1'))",
    "[node.capacity.cpu, node.free.cpu] == [node.free.cpu, node.capacity.cpu]",
    "dyn(pod.name) == dyn(1) || node.capacity.cpu == node.free.cpu",
    "operation == 'UPDATE' && pod.qosLabel != oldPod.qosLabel",
    "math.greatest(0, 100 - 10 * node.pods.size())",
    "node.amplification.cpu == 1.0 ? 1.0 / (node.amplification.cpu - 1.0) : node.amplification.cpu",
    "double(number(node.capacity.memory)) == double(number(node.capacity.memory) + 1)",
)
