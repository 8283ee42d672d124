"""Many pods started at once while what starts them is killed: as kubelets do it, who list what there is of a pod and try again."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koordpolicy.cri.calls import CallFailed
from koordpolicy.cri.shapes import IDENTITY
from koordpolicy.cri.wire import Field, Form, Message, Shape
from tests.integration.container_runtime.cri import Kubelet
from tests.integration.container_runtime.site import Site

AT_ONCE = 6
"""As many pods as a busy kubelet's workers have in hand on a node of this size."""
WITHIN = 180.0
"""Seconds after which a pod counts as lost."""
CGROUPS = Path("/sys/fs/cgroup")
_UID = "io.kubernetes.pod.uid"
_FILTER: Shape = {"labels": Field(3, Form.TEXTS)}
_LIST_PODS: Shape = {"filter": Field(1, Form.MESSAGE, _FILTER)}
_PODS: Shape = {"items": Field(1, Form.MESSAGES, IDENTITY)}
_CONTAINER: Shape = {"id": Field(1, Form.TEXT), "state": Field(6, Form.INTEGER)}
_CONTAINERS: Shape = {"containers": Field(1, Form.MESSAGES, _CONTAINER)}
_RUNNING = 1


@dataclass
class Storm:
    """Starts pods through a socket. `tries` counts what failed and was tried again."""

    site: Site
    socket: Path
    tries: int = 0
    running: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Sandbox and container by the pod's name."""

    def start(self, pods: Sequence[Mapping[str, Any]], workers: ThreadPoolExecutor) -> Sequence[Any]:
        """Have all of them started; what is awaited for each."""
        return [workers.submit(self._insist, pod) for pod in pods]

    def _insist(self, pod: Mapping[str, Any]) -> None:
        end = time.monotonic() + WITHIN
        for attempt in range(1000):
            kubelet = Kubelet(self.socket)
            try:
                self._end(kubelet, pod)
                found = self.site.start(kubelet, pod, attempt)
            except CallFailed as failure:
                if time.monotonic() > end:
                    raise AssertionError(f"{pod['metadata']['name']} is lost: {failure}") from None
                self.tries += 1
                time.sleep(0.3)
            else:
                self.running[pod["metadata"]["name"]] = found
                return
            finally:
                kubelet.close()

    def end(self, kubelet: Kubelet, pods: Sequence[Mapping[str, Any]]) -> None:
        """End pods, as a kubelet and an API server do."""
        for pod in pods:
            self._end(kubelet, pod)
            self.site.node.access.request(
                "DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}?gracePeriodSeconds=0"
            )
            del self.running[pod["metadata"]["name"]]
            for controller in CGROUPS.iterdir():
                _remove_group(controller / self.site.parent(pod))
        made = self.site.node.made
        made[:] = [one for one in made if one.exists()]

    def containers(self, kubelet: Kubelet) -> set[str]:
        """The containers that run, by ID."""
        listed = Message(_CONTAINERS, kubelet.call("ListContainers")).messages("containers")
        return {one.text("id") for one in listed if one.integer("state") == _RUNNING}

    def _end(self, kubelet: Kubelet, pod: Mapping[str, Any]) -> None:
        """What a kubelet does with sandboxes of a pod that it knows nothing good of."""
        request = Message(_LIST_PODS)
        found = Message(_FILTER)
        found.put_texts("labels", {_UID: pod["metadata"]["uid"]})
        request.put_message("filter", found)
        for one in Message(_PODS, kubelet.call("ListPodSandbox", request.encoded())).messages("items"):
            kubelet.remove(one.text("id"))


def _remove_group(group: Path) -> None:
    """What a kubelet does with the group of a pod that is gone: what a killed runtime was about to start ends with it."""
    for place in [*sorted(group.rglob("*/"), key=lambda one: -len(one.parts)), group]:
        if not place.is_dir():
            continue
        for pid in (place / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        end = time.monotonic() + 10
        while place.exists():
            with suppress(OSError):
                place.rmdir()
                break
            assert time.monotonic() < end, place
            time.sleep(0.05)
