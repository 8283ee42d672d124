"""How a pod's volumes come to its node: a plan that is made with the decision and carried out before binding."""

from dataclasses import dataclass

from koordpolicy.model.volumes import ClaimKey


@dataclass(frozen=True, slots=True)
class VolumeBind:
    """A persistent volume that becomes a claim's."""

    volume: str
    claim: ClaimKey
    claim_uid: str = ""


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """Volumes that are bound, and claims for which the class' driver makes one for the node.

    Empty for pods all of whose volumes are bound. `within` is how many seconds all of it may take.
    """

    node: str = ""
    binds: tuple[VolumeBind, ...] = ()
    claims: tuple[ClaimKey, ...] = ()
    within: float = 600.0

    def __bool__(self) -> bool:
        return bool(self.binds or self.claims)
