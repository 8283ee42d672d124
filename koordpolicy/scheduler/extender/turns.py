"""Bindings that kube-scheduler is about to ask for.

Once it has the scores of a pod's nodes it chooses one, and asks for the binding beside its next call. That
call is to know of the pod already, or a burst of pods would all be evaluated by the same free room.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from koordpolicy.model.pod import PodKey

PATIENCE: Final = 0.1
"""Seconds after which a binding is not expected any more: kube-scheduler has found something against it."""


class Underway:
    """The pods whose bindings are expected, each for `patience` seconds at most."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._expected: dict[PodKey, asyncio.Future[None]] = {}

    def expect(self, pod: PodKey) -> None:
        """A pod's node is being chosen."""
        if pod not in self._expected:
            loop = asyncio.get_running_loop()
            coming = self._expected[pod] = loop.create_future()
            loop.call_later(self._patience, self._end, pod, coming)

    def came(self, pod: PodKey) -> None:
        """A pod's binding was asked for, and counts by now if it may."""
        coming = self._expected.get(pod)
        if coming is not None:
            self._end(pod, coming)

    def look(self, placed: Callable[[PodKey], bool]) -> None:
        """Expect none of the pods any more that are on a node by now: another replica may have bound them."""
        for pod in [one for one in self._expected if placed(one)]:
            self.came(pod)

    async def settled(self) -> None:
        """Wait for all bindings that are expected at present."""
        if self._expected:
            await asyncio.wait(list(self._expected.values()))

    def _end(self, pod: PodKey, coming: "asyncio.Future[None]") -> None:
        if not coming.done():
            coming.set_result(None)
            self._expected.pop(pod, None)
