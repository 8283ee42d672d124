"""What broken rules come to as an answer."""

from collections.abc import Sequence
from typing import Final

from koordpolicy.kube.admission import AdmissionAnswer
from koordpolicy.manager.webhooks.rules import AUDIT, ENFORCE, WARN, Violation

_ENFORCEMENTS: Final = (ENFORCE, WARN, AUDIT)


def answered(violations: Sequence[Violation]) -> AdmissionAnswer | None:
    """Refusal with all that is wrong, or what is to be told nevertheless; None where nothing is."""
    if not violations:
        return None
    said = {kind: [str(one) for one in violations if one.enforcement == kind] for kind in _ENFORCEMENTS}
    return AdmissionAnswer(
        not said[ENFORCE],
        "; ".join(said[ENFORCE]),
        warnings=tuple(said[WARN]),
        audit={"violations": "; ".join(said[AUDIT])} if said[AUDIT] else {},
    )
