"""Vectors asked of the mechanisms directly, with the policy's numbers written out as arguments."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from koordpolicy.mechanism.classify import Catalogue, PriorityBand, QoSClass
from koordpolicy.mechanism.fit import fit, fit_all, verdict
from koordpolicy.mechanism.pod_request import effective_requests
from koordpolicy.mechanism.verdict import Verdict
from tests.vectors import inputs
from tests.vectors.runners import RUNNERS as COMPILED
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

CATALOGUE = Catalogue(
    classes=(
        QoSClass("LSE", (), "prod"),
        QoSClass("LSR", ("Guaranteed",), "prod"),
        QoSClass("LS", ("Burstable",), "prod"),
        QoSClass("BE", ("BestEffort",), "batch"),
        QoSClass("SYSTEM", (), "prod"),
    ),
    bands=(
        PriorityBand("prod", "koord-prod", 9000, 9999, 9500),
        PriorityBand("mid", "koord-mid", 7000, 7999, 7500),
        PriorityBand("batch", "koord-batch", 5000, 5999, 5500),
        PriorityBand("free", "koord-free", 3000, 3999, 3500),
    ),
)


def qos_priority_resolution(given: Given) -> Given:
    found = CATALOGUE.resolve(
        given.get("qos_label"), given.get("priority_class_label"), given.get("priority"), given["kube_qos"]
    )
    return {
        "qos": found.qos,
        "raw_class": CATALOGUE.class_name(found.raw_band),
        "class": CATALOGUE.class_name(found.band),
        "value": found.priority,
    }


def fit_filter(given: Given) -> Given:
    node = given["node"]
    request = effective_requests(inputs.pod(given["pod"]))
    allocatable, requested = inputs.resources(node["allocatable"]), inputs.resources(node.get("requested"))
    ignored = given.get("ignored_resources", ()), given.get("ignored_resource_groups", ())
    short = fit(request, allocatable, requested, node["pod_count"], *ignored)
    answer = {"status": verdict(short).word, "reasons": [one.reason for one in short]}
    columns = fit_all(
        request,
        {name: np.array([amount]) for name, amount in allocatable.items()},
        {name: np.array([amount]) for name, amount in requested.items()},
        np.array([node["pod_count"]]),
        *ignored,
    )
    in_columns = {"status": Verdict(columns.verdicts[0]).word, "reasons": list(columns.reasons(0))}
    assert in_columns == answer, "both forms answer alike"
    return answer


RUNNERS: Mapping[tuple[str, str], Runner] = {
    ("scheduler-core", "pod_request"): COMPILED["scheduler-core", "pod_request"],
    ("scheduler-core", "fit_filter"): Runner(fit_filter),
    ("manager", "qos_priority_resolution"): Runner(qos_priority_resolution),
}
