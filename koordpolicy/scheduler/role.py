"""The part of a scheduler in the work, where it is not the only one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from koordpolicy.model.pod import Pod
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.shards import Shard


@dataclass(frozen=True, slots=True)
class Role:
    """`steps` leaves of a profile what others do not do already; only the nodes of a `shard` get pods."""

    steps: Callable[[Profile], Profile] = lambda profile: profile
    shard: Shard | None = None

    def adapt(self, profile: Profile) -> Profile:
        """A profile of policy's as this scheduler is to work by it. Raises ProfileError."""
        left = self.steps(profile)
        return left if self.shard is None else self.shard.adapt(left)

    def holds(self, pod: Pod) -> bool:
        """Whether this scheduler decides on a pod, rather than another one like it."""
        return self.shard is None or self.shard.holds(pod)


ALONE: Final = Role()
