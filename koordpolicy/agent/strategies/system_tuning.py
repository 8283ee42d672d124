"""Kernel parameters of the node as a whole, by policy."""

from typing import Any, Final

from koordpolicy.agent.plan import NODE, Plan, Write
from koordpolicy.algorithms.kernel_memory import min_free_kbytes
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.graph.keys import mapping_keys
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration
from koordpolicy.language.facts import TIMES
from koordpolicy.model.protocol import MEMORY

KIND: Final = "SystemTuning"
WRITER: Final = "system"
MIN_FREE: Final = "vm.min_free_kbytes"
WATERMARK: Final = "vm.watermark_scale_factor"
_RANGES: Final = {MIN_FREE: range(10_240, 10_485_761), WATERMARK: range(10, 401)}
"""What Koordinator takes at most and at least: with other values a node may not get on."""


FIELDS: Final = (
    ("minFreeFactor", MIN_FREE),
    ("watermarkScaleFactor", WATERMARK),
    ("reapsMemory", "memcg_reaper.reap_background"),
    ("groupIdentity", "kernel.sched_group_identity_enabled"),
    ("idleSaverWatermark", "kernel.sched_idle_saver_wmark"),
    ("limitsPageCache", "pagecache_limit.enabled"),
)
"""Which field each file follows from."""
_FEATURES: Final = "sched_features"


def system_plan(graph: RuleGraph, node: Facts, now: int) -> Plan:
    """What is to be written. What no rule says is left as it is; what cannot be told or is out of range too, and noted."""
    if not graph.subjects(KIND):
        return Plan()
    about = graph.about(KIND, "", {"node": node, "now": TIMES.timestamp(now)})
    features = mapping_keys(graph, KIND).get(("", "features"), ())
    writes: list[Write] = []
    notes: list[str] = []
    for field, file in (*FIELDS, *((f"features[{name}]", _FEATURES) for name in features)):
        try:
            said = about.value(field)
        except CelError as problem:
            notes.append(f"{KIND}.{field}: {problem}")
            continue
        if said is None:
            continue
        value = _value(field, file, said, node)
        allowed = _RANGES.get(file)
        if allowed is not None and value not in allowed:
            notes.append(f"{KIND}.{field}: {value} is outside {allowed.start} to {allowed.stop - 1}")
        else:
            writes.append(Write(file, NODE, value, f"{KIND}.{field}", WRITER))
    return Plan(tuple(writes), notes=tuple(notes))


def _value(field: str, file: str, said: Any, node: Facts) -> int | str:
    if file == _FEATURES:
        name = field.removeprefix("features[").removesuffix("]")
        return name if said else f"NO_{name}"
    if file == MIN_FREE:
        return min_free_kbytes(int(node["resources.capacity"].get(MEMORY, 0)), said)
    return said.ns if isinstance(said, Duration) else int(said)
