"""Runners of the scheduler's core."""

from collections.abc import Mapping

from koordpolicy.mechanism.pod_request import effective_requests, nonzero_requests
from tests.vectors import inputs
from tests.vectors.compare import AMOUNTS
from tests.vectors.runners.runner import Runner


def pod_request(given: Mapping[str, object]) -> Mapping[str, object]:
    pod = inputs.pod(given["pod"])
    return {
        "request": inputs.shortened(effective_requests(pod)),
        "nonzero": inputs.shortened(nonzero_requests(pod)),
    }


RUNNERS: Mapping[str, Runner] = {
    "pod_request": Runner(pod_request, AMOUNTS),
}
