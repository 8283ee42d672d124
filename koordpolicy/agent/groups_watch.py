"""Notices pods by the control groups that the kubelet makes for them, before anybody tells of them."""

import asyncio
import re
from collections.abc import Callable
from typing import Final

from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.root import HeldDirectory
from koordpolicy.model.protocol import QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED
from koordpolicy.model.time import NANOSECONDS

_CLASSES: Final = (QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT)
_POD: Final = re.compile(r"(?:kubepods[a-z-]*-)?pod[0-9a-f_-]{8,64}(?:\.slice)?")


_CATCHES_UP: Final = 10
"""Looks after a change in which containers may still be missing: a kubelet tells of them some time after it made their group."""


_NAMES_EVERY: Final = 10
"""Looks after which names are read though no directory has more or fewer of them: one pod may have come as another went."""


class GroupsWatch:
    """Looks at three directories now and then. `changed` is called when a pod's group is new or gone.

    It is called again for some looks after that while pods are `starting`: not all of their containers are known. Names
    are read where the number of directories is another one.
    """

    def __init__(
        self,
        kernel: NodeKernel,
        every: Callable[[], int],
        changed: Callable[[], None],
        starting: Callable[[], bool] = lambda: False,
    ) -> None:
        self._kernel = kernel
        self._every = every
        self._changed = changed
        self._starting = starting
        self._known: frozenset[str] | None = None
        self._again = 0
        self._held: list[HeldDirectory] = []
        self._links: tuple[int, ...] | None = None
        self._looks = 0

    async def run(self) -> None:
        """Look until cancelled."""
        try:
            while True:
                self.look()
                await asyncio.sleep(self._every() / NANOSECONDS)
        finally:
            self._let_go()

    def look(self) -> None:
        """Look once."""
        found = self._known if self._as_before() else self._groups()
        if found is not None:
            new = self._known is not None and found != self._known
            if new:
                self._again = _CATCHES_UP
            if new or (self._again > 0 and self._starting()):
                self._changed()
            self._again = max(self._again - 1, 0)
            self._known = found

    def _as_before(self) -> bool:
        """Whether each directory has as many directories in it as when their names were read."""
        self._looks += 1
        if self._links is None or self._looks % _NAMES_EVERY == 0:
            return False
        try:
            return tuple(one.links() for one in self._held) == self._links
        except KernelFileError:
            return False

    def _groups(self) -> frozenset[str] | None:
        self._let_go()
        kubepods = self._kernel.kubepods()
        if kubepods is None:
            return None
        names: set[str] = set()
        links = []
        for one in _CLASSES:
            directory = self._kernel.hierarchy.directory("cpu", kubepods.of_class(one))
            try:
                held = self._kernel.root.hold_directory(directory)
                self._held.append(held)
                # Counted before they are read: what comes meanwhile is another number at the next look.
                links.append(held.links())
                names.update(name for name in self._kernel.root.names(directory) if _POD.fullmatch(name))
            except KernelFileError:
                continue  # this class has no pods yet
        # A class whose directory is still to come is looked for by its name.
        self._links = tuple(links) if len(links) == len(_CLASSES) else None
        return frozenset(names)

    def _let_go(self) -> None:
        self._links = None
        while self._held:
            self._held.pop().close()
