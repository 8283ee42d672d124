"""The part of a scheduler in the work, where it is not the only one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.graph import RuleGraph
from koordpolicy.model.pod import Pod
from koordpolicy.scheduler.plugins import PLUGINS, Plugin
from koordpolicy.scheduler.profile import Profile, profile_of
from koordpolicy.scheduler.shards import Shard


@dataclass(frozen=True, slots=True)
class Role:
    """`steps` leaves of a profile what others do not do already; only the nodes of a `shard` get pods.

    `plugins` are those that policy may name.
    """

    steps: Callable[[Profile], Profile] = lambda profile: profile
    shard: Shard | None = None
    plugins: Mapping[str, Plugin] = field(default_factory=lambda: PLUGINS)

    def profile(self, graph: RuleGraph, name: str) -> Profile:
        """A profile of policy's as this scheduler is to work by it. Raises ProfileError."""
        left = self.steps(profile_of(graph, name, self.plugins))
        return left if self.shard is None else self.shard.adapt(left)

    def holds(self, pod: Pod) -> bool:
        """Whether this scheduler decides on a pod, rather than another one like it."""
        return self.shard is None or self.shard.holds(pod)


ALONE: Final = Role()
