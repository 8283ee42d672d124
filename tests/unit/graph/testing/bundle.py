"""The policies that the tests of policy tests speak of, and how tests are added to them."""

from koordpolicy.graph import Compilation, Layer, compile_policies
from tests.unit.graph.policies_text import BUNDLE, HEAD, document

SUPPRESS = document(
    "CPUSuppress",
    "default",
    """
  parameters:
    share: 50%
    floor: {type: cpu, optional: true}
  variables:
    - {name: pods, expression: "node.pods.filter(p, has(p.usage.cpu)).map(p, p.usage.cpu).sum()"}
  target: {cel: node.capacity.cpu * parameters.share}
  mechanism: cpuset
  minimum: {cel: "parameters.floor.hasValue() ? parameters.floor.value() : node.usage.total.cpu"}
  minimumCPUs: 2
  interval: {cel: node.metric.age}
  figures: {pods: {cel: variables.pods}}
""",
)
POOL = document(
    "CPUSuppress", "pool-b", "  match: {nodes: {matchLabels: {pool: b}}}\n  parameters: {share: 25%}\n"
)
BATCH = document(
    "Overcommit",
    "batch",
    """
  resource: batch
  parameters:
    share: 100%
    bands: {type: list(string), value: [batch, free]}
    shares: {type: "map(string, percent)", value: {cpu: 60%, memory: 65%}}
  cpu:
    cel: "size(parameters.bands) + size(parameters.shares) > 0 ? node.capacity.cpu * parameters.share : cpu('0')"
""",
)
RULE = document(
    "AdmissionRule",
    "r",
    "  require: {cel: pod.active && pod.kubernetesQoS == 'Burstable' && operation == 'CREATE'}\n  message: {cel: pod.name}\n",
)


def bundled(test: str, options: str = "") -> Compilation:
    """The policies with one PolicyTest, whose spec is `test`, and with `options` in the bundle's spec."""
    text = HEAD.format(kind="PolicyTest", name="t") + "".join(f"  {line}\n" for line in test.splitlines())
    parts = {"koordpolicy": BUNDLE + options, "0": SUPPRESS, "1": POOL, "2": BATCH, "3": RULE, "test": text}
    return compile_policies(Layer("own", {f"{name}.yaml": part for name, part in parts.items()}))


LINES_BEFORE = HEAD.count("\n")
"""How many lines of a PolicyTest stand before its spec's first line."""
