"""The ratios of a node, in its annotations: how fast its CPUs are, and how many times over its resources are sold."""

from typing import Final

from koordpolicy.algorithms.amplification import ratio_differs, ratio_text, ratios_text
from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.graph import About, RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.node_change import NodeChange, to_write
from koordpolicy.model.facts import Record
from koordpolicy.model.node import Node, normalization_ratio
from koordpolicy.model.protocol import CPU_NORMALIZATION_RATIO, RESOURCE_AMPLIFICATION_RATIO
from koordpolicy.model.reading import ObjectError

KIND: Final = "Amplification"


def ratios_of(graph: RuleGraph, sight: NodeSight, record: Record, now: int) -> NodeChange:
    """What is to be written of a node's ratios; `now` in nanoseconds since 1970.

    A speed that cannot be told, or is not believed, leaves its annotation as it is. Where amplification cannot be told, there is
    none. It follows the speed that the annotation had: a new one counts once it has been written.
    """
    about = graph.about(KIND, "", {"node": record, "now": TIMES.timestamp(now)})
    wanted: dict[str, str | None] = {}
    problems: list[str] = []
    try:
        wanted.update(_speed(about, sight.node))
    except (CelError, ObjectError) as error:
        problems.append(f"normalization: {error}")
    amplified: str | None = None
    try:
        amplified = _amplification(about, sight.node)
    except (CelError, ObjectError) as error:
        problems.append(str(error))
    wanted[RESOURCE_AMPLIFICATION_RATIO] = amplified
    return NodeChange(to_write(sight.node.annotations, wanted), problems=tuple(problems))


def _speed(about: About, node: Node) -> dict[str, str]:
    """The annotation on the speed of CPUs, where it is to be written. Raises ObjectError for one that is not believed."""
    if not about.value("normalization.enabled"):
        return {}
    ratio = about.value("normalization.ratio")
    if ratio is None:
        return {}
    least, most = about.value("normalization.minimum"), about.value("normalization.maximum")
    if not ((least is None or least <= ratio) and (most is None or ratio <= most)):
        raise ObjectError(f"a ratio of {ratio} is not between {least} and {most}")
    try:
        stands = normalization_ratio(node.annotations)
    except ObjectError:
        stands = None
    by = about.value("normalization.whenChangedBy") or 0.0
    return {CPU_NORMALIZATION_RATIO: ratio_text(ratio)} if ratio_differs(stands, ratio, by) else {}


def _amplification(about: About, node: Node) -> str | None:
    """The annotation on what is sold; None for none. Raises ObjectError for a ratio that is too small."""
    normalization_ratio(
        node.annotations
    )  # to say so where it cannot be read: policies would take it for absent
    least = about.value("minimum")
    ratios: dict[str, float] = {}
    for resource in about.value("resources") or ():
        ratio = about.value("ratio", resource=resource)
        if ratio is None:
            continue
        if not (least is None or least <= ratio):
            raise ObjectError(f"`{resource}` is sold {ratio} times over, which is less than {least}")
        ratios[resource] = ratio
    return ratios_text(ratios) if ratios else None
