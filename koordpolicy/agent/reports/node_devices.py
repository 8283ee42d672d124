"""Keeps the Device object of this node as its devices are."""

import logging
from collections.abc import Callable
from typing import Final

from koordpolicy.agent.collectors.devices import DeviceFindings
from koordpolicy.agent.reports.devices import device_object, says_devices
from koordpolicy.kube.errors import AlreadyExists, Conflict, KubeError
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import DEVICES
from koordpolicy.model.reading import ObjectError

LOG: Final = logging.getLogger(__name__)


class DeviceReporter:
    """Reports for one node. `now` gives nanoseconds since 1970."""

    def __init__(self, cluster: Cluster, now: Callable[[], int]) -> None:
        self._cluster = cluster
        self._now = now
        self.trouble = ""
        """Why not all of the devices were reported; empty when they were."""

    async def report(self, node: Object, found: DeviceFindings, standing: Object | None) -> bool:
        """Bring the object to what was found; whether it was written. A node without devices gets none."""
        problems = "; ".join(found.problems.values())
        try:
            wanted = device_object(node, found, standing, self._now())
            if says_devices(standing, wanted) or (standing is None and not wanted["spec"]["devices"]):
                self._say(problems)
                return False
            if standing is None:
                await self._cluster.create(DEVICES, wanted)
            else:
                await self._cluster.update(DEVICES, wanted)
        except (AlreadyExists, Conflict):
            return False  # the watch tells of it before the next round
        except (KubeError, ObjectError) as error:
            self._say(str(error))
            return False
        self._say(problems)
        return True

    def _say(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            LOG.warning("the devices of the node are not reported: %s", trouble)
        self.trouble = trouble
