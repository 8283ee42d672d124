"""The one thing that the console may change in a cluster: how a rollout goes on. Only for owners of a token."""

from typing import Protocol


class RolloutHand(Protocol):
    """Leaves wishes for whoever runs a rollout, as `koordpolicy rollout` does."""

    async def ask(self, name: str, action: str) -> str:
        """Ask the rollout of a revision, by the name of its object, to pause, resume or abort; what to say of it.

        Raises `CannotAnswer` where there is none, it cannot do that now, or the cluster refuses.
        """
        ...
