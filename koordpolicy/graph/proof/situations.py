"""Inputs of everyday life, from which examples are made: a server half used, a service, a batch job.

An example shall tell something: on a node of four idle cores most formulas give nothing at all. The figures
mean nothing else; no decision is made from them.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.testing.facts import laid_over, read_facts
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.cel.values_time import parse_timestamp
from koordpolicy.language.documents import read_documents
from koordpolicy.language.facts.table import USUAL_TIME

USUAL_MOMENT: Final = parse_timestamp(USUAL_TIME).ns

_HALF_USED = """
node:
  name: node-1
  capacity: {cpu: 64, memory: 256Gi, pods: 110}
  allocatable: {cpu: 62, memory: 248Gi, pods: 110}
  physical: {cpu: 62, memory: 248Gi, pods: 110}
  requested: {cpu: 40, memory: 160Gi, pods: 2}
  free: {cpu: 22, memory: 88Gi, pods: 108}
  reserved: {cpu: 2, memory: 8Gi}
  usage:
    total: {cpu: 28, memory: 112Gi}
    system: {cpu: 2, memory: 8Gi}
    prod: {cpu: 20, memory: 80Gi}
    highPriority: {cpu: 20, memory: 80Gi}
    avg: {cpu: 26, memory: 108Gi}
    p50: {cpu: 26, memory: 108Gi}
    p90: {cpu: 30, memory: 114Gi}
    p95: {cpu: 32, memory: 116Gi}
    p99: {cpu: 36, memory: 120Gi}
  load: {cpu: 30, memory: 116Gi, prod: {cpu: 22, memory: 84Gi}}
  metric: {known: true, age: 30s, updatedAt: "2025-12-31T23:59:30Z"}
  prediction: {prodReclaimable: {cpu: 12, memory: 40Gi}}
  resources:
    capacity: {cpu: 64, memory: 256Gi}
    allocatable: {cpu: 62, memory: 248Gi}
    physical: {cpu: 62, memory: 248Gi}
    requested: {cpu: 40, memory: 160Gi}
    nonzeroRequested: {cpu: 40, memory: 160Gi}
    usage: {cpu: 28, memory: 112Gi}
    load: {cpu: 30, memory: 116Gi}
    prodLoad: {cpu: 22, memory: 84Gi}
    filterLoad: {cpu: 30, memory: 116Gi}
    scoreLoad: {cpu: 30, memory: 116Gi}
  pods:
    - name: web
      namespace: default
      qos: LS
      qosLabel: LS
      band: prod
      priority: 9500
      kubernetesQoS: Burstable
      request: {cpu: 30, memory: 120Gi}
      usage: {cpu: 20, memory: 80Gi}
    - name: job
      namespace: default
      qos: BE
      qosLabel: BE
      band: batch
      priority: 5500
      kubernetesQoS: BestEffort
      usage: {cpu: 6, memory: 24Gi}
zone:
  capacity: {cpu: 32, memory: 128Gi}
  allocatable: {cpu: 31, memory: 124Gi}
  requested: {cpu: 20, memory: 80Gi}
pod:
  name: web
  namespace: default
  qos: LS
  qosLabel: LS
  band: prod
  priority: 9500
  kubernetesQoS: Burstable
  request: {cpu: 2, memory: 4Gi}
  usage: {cpu: 1, memory: 2Gi}
  resources: {request: {cpu: 2, memory: 4Gi}, estimate: {cpu: 1700m, memory: 2867Mi}}
namespaceObject: {name: default}
"""

_ANOTHER_POD = """
pod:
  name: job
  qos: BE
  qosLabel: BE
  band: batch
  priority: 5500
  kubernetesQoS: BestEffort
  request: {cpu: 4, memory: 8Gi}
  usage: {cpu: 4, memory: 6Gi}
"""

_NEARLY_IDLE = """
node:
  requested: {cpu: 4, memory: 16Gi}
  free: {cpu: 58, memory: 232Gi}
  usage:
    total: {cpu: 3, memory: 12Gi}
    system: {cpu: 1, memory: 4Gi}
    prod: {cpu: 2, memory: 8Gi}
    highPriority: {cpu: 2, memory: 8Gi}
    p95: {cpu: 4, memory: 16Gi}
  load: {cpu: 3, memory: 12Gi}
  pods: []
"""

_NEARLY_FULL = """
node:
  requested: {cpu: 60, memory: 240Gi}
  free: {cpu: 2, memory: 8Gi}
  usage:
    total: {cpu: 58, memory: 232Gi}
    system: {cpu: 4, memory: 12Gi}
    prod: {cpu: 50, memory: 200Gi}
    highPriority: {cpu: 50, memory: 200Gi}
    p95: {cpu: 60, memory: 240Gi}
  load: {cpu: 59, memory: 236Gi}
"""

_WITH_ENDED_PODS = """
node:
  pods:
    - name: ended
      namespace: default
      qos: LS
      qosLabel: LS
      band: prod
      priority: 9500
      kubernetesQoS: Burstable
      active: false
      request: {cpu: 30, memory: 120Gi}
    - name: ended-job
      namespace: default
      qos: BE
      qosLabel: BE
      band: batch
      priority: 5500
      kubernetesQoS: BestEffort
      active: false
      request: {cpu: 4, memory: 8Gi}
"""


@dataclass(frozen=True, slots=True)
class Situation:
    """Records of all roots, and what node and pod they show, in phrases."""

    node: str
    pod: str
    records: dict[str, Any]


@cache
def situations(moment: int | None = None) -> tuple[Situation, ...]:
    """The situations, the most telling first. Their records are shared: copy before changing one.

    They take place at a moment in nanoseconds since 1970, in the first of 2026 where none is named.
    """
    shift = 0 if moment is None else moment - USUAL_MOMENT
    found = (
        Situation("a node half used", "a service's pod", _records(_HALF_USED)),
        Situation("a node half used", "a batch pod", _records(_HALF_USED, _ANOTHER_POD)),
        Situation("a node nearly idle", "a service's pod", _records(_HALF_USED, _NEARLY_IDLE)),
        Situation("a node nearly full", "a service's pod", _records(_HALF_USED, _NEARLY_FULL)),
        Situation("a node with ended pods", "a service's pod", _records(_HALF_USED, _WITH_ENDED_PODS)),
        Situation("a node without measurements", "a pod that requests nothing", records_of({})),
    )
    return tuple(Situation(one.node, one.pod, _shifted(one.records, shift)) for one in found)


def at_moment(situation: Situation, moment: int) -> Situation:
    """The situation at another time: all its moments are as far from one another as they were."""
    shift = moment - situation.records["now"].ns
    return Situation(situation.node, situation.pod, _shifted(situation.records, shift))


def _shifted(value: Any, shift: int) -> Any:
    """The same at another time: every moment but that of nothing is moved."""
    match value:
        case Timestamp(ns=ns):
            return Timestamp(ns + shift) if shift and ns else value
        case dict():
            return {key: _shifted(held, shift) for key, held in value.items()} if shift else value
        case list():
            return [_shifted(held, shift) for held in value] if shift else value
    return value


def _records(*texts: str) -> dict[str, Any]:
    found = Diagnostics()
    said: Any = {}
    for text in texts:
        [document] = read_documents("situations.yaml", text, found)
        said = laid_over(said, read_facts(document.data, document, (), found))
    assert not len(found), [one.message for one in found]
    return records_of(said)
