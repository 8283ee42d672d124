"""Spans of admissions: a pod that is created gets its trace here, unless whoever creates it gave it one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from koordpolicy.kube.admission import AdmissionRequest, Operation
from koordpolicy.model.protocol import TRACEPARENT
from koordpolicy.model.reading import Json, mapping
from koordpolicy.runtime.tracing import Tracing


@dataclass(frozen=True, slots=True)
class AdmissionSpans:
    """Makes a span `admit` of each traced pod. `revision` gives the name of the revision that decides, `seed` a text that
    is another one each time, `now` nanoseconds since 1970.
    """

    tracing: Tracing
    revision: Callable[[], str]
    seed: Callable[[], str]
    now: Callable[[], int]

    def traced(
        self,
        request: AdmissionRequest,
        pod: Json,
        profiles: Iterable[str],
        failed: Iterable[tuple[str, str]],
        began: int,
    ) -> Json:
        """The pod as those profiles made it, with its trace where it is traced: nothing that is tried, or is there already, is.

        Raises ObjectError for a pod whose metadata cannot be read.
        """
        if request.operation is not Operation.CREATE or request.dry_run:
            return pod
        metadata = mapping(pod, "metadata")
        annotations = mapping(metadata, "annotations", "metadata")
        if TRACEPARENT in annotations:
            context = self.tracing.context("", _texts(annotations))
        else:
            context = self.tracing.new_context(self.seed())
        if context is None:
            return pod
        attributes = {
            "k8s.namespace.name": request.namespace,
            "k8s.pod.name": request.name or str(metadata.get("generateName", "")),
            "koordpolicy.revision": self.revision(),
            "koordpolicy.profiles": ", ".join(profiles),
        }
        problem = "; ".join(f"{name}: {why}" for name, why in failed)
        below = self.tracing.add("admit", context, began, self.now(), attributes, problem)
        said = {**annotations, TRACEPARENT: str(below)}
        return {**pod, "metadata": {**metadata, "annotations": said}}


def _texts(annotations: Mapping[str, object]) -> Mapping[str, str]:
    return {key: value for key, value in annotations.items() if isinstance(value, str)}
