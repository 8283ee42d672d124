"""Kubernetes' QoS class of a pod whose status does not say it yet, as CEL: what `model.pod.computed_qos` computes."""

from collections.abc import Callable

from koordpolicy.graph.native.amounts import amounts_of, equal_totals
from koordpolicy.language.cel.escapes import quote_string
from koordpolicy.model.protocol import CPU, MEMORY, QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED


def computed_qos(root: str, pod: str, use: Callable[[str, Callable[[], str]], str]) -> str:
    """The class of the pod that the text `pod` stands for, of the name `root`. `use` makes a variable of a text."""
    parts = use(
        f"{root}_qos_parts",
        lambda: (
            f"has({pod}.spec.resources) ? [{pod}.spec.resources] :"
            f" ({pod}.spec.?initContainers.orValue([]) + {pod}.spec.?containers.orValue([]))"
            ".map(c, c.?resources.orValue({}))"
        ),
    )

    def amounts(where: str, resource: str) -> str:
        found = f"{parts}.map(r, r.?{where}[?{quote_string(resource)}].orValue('0'))"
        return use(f"{root}_qos_{where}_{resource}", lambda: amounts_of(found, resource))

    requests = [amounts("requests", one) for one in (CPU, MEMORY)]
    limits = [amounts("limits", one) for one in (CPU, MEMORY)]
    nothing = " && ".join(f"{one}.all(a, a == 0)" for one in (*requests, *limits))
    every = " && ".join(f"{one}.all(a, a > 0)" for one in limits)
    same = " && ".join(map(equal_totals, requests, limits))
    said = f"{pod}.?status.?qosClass.orValue('')"
    return (
        f"{said} != '' ? {said} : {nothing} ? {quote_string(QOS_BEST_EFFORT)}"
        f" : {every} && {same} ? {quote_string(QOS_GUARANTEED)} : {quote_string(QOS_BURSTABLE)}"
    )
