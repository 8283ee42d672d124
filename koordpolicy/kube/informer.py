"""Keeps a mirror of one resource up to date over any cluster: list, watch, resume, list again.

It never gives up: a cluster that cannot be reached leaves the mirror as it was (stale, but whole) until it
answers again. While a page of a list is worked on, the next one is on its way.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from koordpolicy.diagnostics.wording import worded
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import Forbidden, Gone, KubeError, Rejected, TooManyRequests, Unreachable
from koordpolicy.kube.mirror import Key, Mirror
from koordpolicy.kube.port import Cluster, Object, ObjectList
from koordpolicy.kube.resources import Resource

LOG: Final = logging.getLogger(__name__)

_PAGE: Final = 500
"""Objects a request while listing."""

_SLICE: Final = 0.01
"""Seconds for which a mirror is told of objects before others get their turn, beside the length of one."""

_STEADY: Final = 30.0
"""Seconds after which a stream counts as a success, though nothing happened meanwhile."""


class Informer:
    """Feeds `mirror` with the selected objects of a resource for as long as `run` runs.

    `on_trouble` hears of every failed request, with the number of failures in a row. A mirror that takes lists `in_steps` is
    shown one as its pages come, and others get their turn in between.
    """

    def __init__(
        self,
        cluster: Cluster,
        resource: Resource,
        mirror: Mirror,
        backoff: Backoff,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        on_trouble: Callable[[KubeError, int], None] | None = None,
    ) -> None:
        self.mirror = mirror
        self._cluster = cluster
        self._resource = resource
        self._namespace = namespace
        self._labels = label_selector
        self._fields = field_selector
        self._backoff = backoff
        self._on_trouble = on_trouble
        self._synced = asyncio.Event()
        self._failures = 0
        self._waited_for = 0
        """How many of the failures count no more for how long to wait."""
        self._forbidden = 0
        self._resumable = False

    @property
    def synced(self) -> bool:
        """Whether the mirror has shown a whole list at least once."""
        return self._synced.is_set()

    @property
    def failures(self) -> int:
        """How many requests failed, or streams ended early, in a row: 0 while all is well."""
        return self._failures

    async def wait_synced(self) -> None:
        """Return as soon as the mirror has shown a whole list."""
        await self._synced.wait()

    async def run(self) -> None:
        """List and watch until cancelled.

        Raises Rejected when the cluster does not understand the request itself (a bad selector): asking again
        would not help.
        """
        while True:
            trouble: KubeError | None = None
            try:
                if not self._resumable:
                    await self._list()
                await self._watch()
            except Gone as error:
                self._resumable = False
                trouble = error
            except Rejected as error:
                if not isinstance(error, Forbidden):  # permissions may be granted later
                    raise
                trouble = error
            except KubeError as error:
                trouble = error
            except Exception as error:
                # Nobody foresaw it; to list anew is right whatever it was, and to end would end the process.
                LOG.exception("following %s failed", self._resource)
                self._resumable = False
                trouble = Unreachable(f"{self._resource} cannot be followed: {worded(error)}")
            await self._pause(trouble)

    async def _pause(self, trouble: KubeError | None) -> None:
        """Wait as long as the failures in a row suggest; an ended stream counts as one.

        The first end of a stream, or version that is gone, is the ordinary course of things and asks for no
        wait; but a server that ends every stream at once must not be asked without pause.
        """
        self._failures += 1
        if trouble is not None and self._on_trouble is not None:
            self._on_trouble(trouble, self._failures)
        if self._failures == 1 and (trouble is None or isinstance(trouble, Gone)):
            return
        # A server that has just come back knows no roles yet: its 403 passes within a second or two, however long it
        # was away before.
        self._forbidden = self._forbidden + 1 if isinstance(trouble, Forbidden) else 0
        delay = self._backoff.delay(self._forbidden or self._failures - self._waited_for)
        if isinstance(trouble, TooManyRequests):
            delay = max(delay, trouble.retry_after)
        if await self._backoff.sleep(delay):
            self._waited_for, self._forbidden = self._failures, 0

    async def _watch(self) -> None:
        stream = self._cluster.watch(
            self._resource,
            namespace=self._namespace,
            resource_version=self.mirror.resource_version,
            label_selector=self._labels,
            field_selector=self._fields,
            bookmarks=True,
        )
        clock = asyncio.get_running_loop().time
        async with stream as events:
            began = clock()
            try:
                until = began + _SLICE
                async for event in events:
                    self.mirror.apply(event)
                    self._failures = self._waited_for = 0
                    # What came in together is taken without waiting: it may be thousands.
                    if clock() >= until:
                        await asyncio.sleep(0)
                        until = clock() + _SLICE
            finally:
                if clock() - began >= _STEADY:
                    self._failures = self._waited_for = 0

    async def _list(self) -> None:
        taking = _InSteps(self.mirror) if self.mirror.in_steps else _AtOnce(self.mirror)
        page = await self._page("")
        while page.continue_token:
            coming = asyncio.create_task(self._page(page.continue_token))
            coming.add_done_callback(_heard)
            try:
                await taking.page(page.items)
                page = await coming
            except Gone:
                page = await self._page("", limit=0)  # the pages outlived the history: all at once
                taking.begin_anew()
            finally:
                coming.cancel()
        await taking.page(page.items)
        taking.end(page.resource_version)
        self._resumable = True
        self._synced.set()

    async def _page(self, token: str, limit: int = _PAGE) -> ObjectList:
        return await self._cluster.list(
            self._resource,
            namespace=self._namespace,
            label_selector=self._labels,
            field_selector=self._fields,
            limit=limit,
            continue_token=token,
        )


def _heard(request: "asyncio.Task[ObjectList]") -> None:
    """Who is stopped amid a list asks for no answer any more, whatever it is."""
    if not request.cancelled():
        request.exception()


class _AtOnce:
    """Shows a mirror a list that has come in whole."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._items: list[Object] = []

    def begin_anew(self) -> None:
        """What has come so far is no part of the list any more."""
        self._items.clear()

    async def page(self, items: Sequence[Object]) -> None:
        """The next part."""
        self._items.extend(items)

    def end(self, resource_version: str) -> None:
        """There are no more."""
        self._mirror.replace(self._items, resource_version)


class _InSteps:
    """Shows a mirror the parts of a list as they come."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._listed: set[Key] = set()

    def begin_anew(self) -> None:
        """What has come so far is no part of the list any more."""
        self._listed.clear()

    async def page(self, items: Sequence[Object]) -> None:
        """The next part."""
        clock = asyncio.get_running_loop().time
        until = clock() + _SLICE
        for item in items:
            self._listed.update(self._mirror.take((item,)))
            if clock() >= until:
                await asyncio.sleep(0)
                until = clock() + _SLICE
        await asyncio.sleep(0)

    def end(self, resource_version: str) -> None:
        """There are no more."""
        self._mirror.keep_only(self._listed, resource_version)
