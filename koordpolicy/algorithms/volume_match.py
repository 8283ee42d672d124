"""Which persistent volumes a claim may have, whatever the node."""

from collections.abc import Iterable

from koordpolicy.model.volumes import AVAILABLE, Volume, VolumeClaim


def candidates(claim: VolumeClaim, volumes: Iterable[Volume]) -> list[Volume]:
    """The volumes of the claim's class that it may have, the best first: the smallest that are large enough.

    A volume that is for the claim already is the only one.
    """
    found = []
    for volume in volumes:
        if not _suits(claim, volume):
            continue
        if is_for(volume, claim):
            return [volume]
        if (
            volume.claim is None
            and volume.phase == AVAILABLE
            and claim.modes <= volume.modes
            and (claim.selector is None or claim.selector.matches(volume.labels))
        ):
            found.append(volume)
    return sorted(found, key=lambda volume: (volume.size or 0, volume.name))


def is_for(volume: Volume, claim: VolumeClaim) -> bool:
    """Whether a volume says that it is for a claim."""
    return volume.claim == claim.key and volume.claim_uid in ("", claim.uid)


def _suits(claim: VolumeClaim, volume: Volume) -> bool:
    return (
        (volume.claim is None or is_for(volume, claim))
        and (volume.size or 0) >= (claim.request or 0)
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.terminating
    )
