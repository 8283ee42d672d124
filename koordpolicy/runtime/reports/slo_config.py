"""What is told of a followed ConfigMap `slo-controller-config`: in the log, metrics, `/statusz`, and Events on the ConfigMap."""

import logging
from collections.abc import Callable
from typing import Any, Final

from koordpolicy.graph.exchange.documents import Taken
from koordpolicy.kube.event_correlator import EventRecorder
from koordpolicy.kube.port import Object
from koordpolicy.model.slo_config import CONFIG_MAP
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.live_config import LiveConfig, document_of
from koordpolicy.runtime.policies.revisions import RejectedRevision

LOG: Final = logging.getLogger(__name__)

REFUSED: Final = "SLOConfigRefused"
FOLLOWED: Final = "SLOConfigFollowed"
"""The reasons of the Events."""
_GAUGE: Final = "koordpolicy_slo_config_refused"
_SHOWN: Final = 20


class SLOConfigReport:
    """Of one ConfigMap. Only the replica that leads writes Events."""

    def __init__(
        self, namespace: str, metrics: Metrics, recorder: EventRecorder, leads: Callable[[], bool]
    ) -> None:
        self._place = f"{namespace}/{CONFIG_MAP}"
        self._about: Object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIG_MAP, "namespace": namespace},
        }
        self._metrics = metrics
        self._recorder = recorder
        self._leads = leads
        self._found: Object | None = None
        self._config = LiveConfig()
        self._rejected: RejectedRevision | None = None

    def tell(self, found: Object | None, config: LiveConfig) -> None:
        """The ConfigMap is another, None where it is gone, and that is what it says now."""
        self._found, self._config, self._rejected = found, config, None
        self._metrics.clear(_GAUGE)
        for row in config.refused:
            LOG.warning(
                "%s is refused: %s: %s; what it said before holds", self._place, row.source, row.reason
            )
            self._metrics.set(_GAUGE, 1, document=document_of(row.source))
        for row in config.left_out:
            LOG.info("%s: %s is left out: %s", self._place, row.source, row.reason)
        if found is None:
            LOG.info("there is no ConfigMap %s: the policies decide alone", self._place)
        else:
            result = "refused" if config.refused else "taken"
            self._metrics.add("koordpolicy_slo_config_changes_total", result=result)
        self.again(self._leads())

    def rejected(self, rejected: RejectedRevision) -> None:
        """A revision is rejected: for what the ConfigMap says, where an error lies there."""
        above = rejected.revision.above
        if any(one.span.file in above for one in rejected.errors):
            self._rejected = rejected
            if self._leads():
                self._record(f"it does not go together with the policies: {rejected.message}")

    def again(self, leading: bool) -> None:
        """Tell by Events how it stands, where this replica leads."""
        if not leading or self._found is None:
            return
        for row in self._config.refused[:_SHOWN]:
            self._record(f"{row.source}: {row.reason}; what it said before holds")
        if not self._config.refused:
            count = len(self._config.files)
            self._recorder.record(
                self._about, FOLLOWED, f"{count} of its documents lie above the policies", action="Follow"
            )

    def _record(self, message: str) -> None:
        self._recorder.record(self._about, REFUSED, message, type="Warning", action="Follow")

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        config, rejected = self._config, self._rejected
        return {
            "sloConfig": {
                "configMap": self._place,
                "found": self._found is not None,
                "documents": [path.rpartition("/")[2].removesuffix(".yaml") for path in config.files],
                "refused": _rows(config.refused),
                "leftOut": _rows(config.left_out),
                "rejected": rejected and rejected.message,
            }
        }


def _rows(rows: tuple[Taken, ...]) -> list[dict[str, str]]:
    return [{"place": row.source, "reason": row.reason} for row in rows[:_SHOWN]]
