"""What broken rules come to as an answer."""

from collections.abc import Collection, Sequence
from typing import Final

from koordpolicy.kube.admission import AdmissionAnswer
from koordpolicy.manager.webhooks.rules import AUDIT, ENFORCE, KIND, WARN, Violation

_ENFORCEMENTS: Final = (ENFORCE, WARN, AUDIT)


def answered(
    violations: Sequence[Violation], elsewhere: Collection[str] = frozenset()
) -> AdmissionAnswer | None:
    """Refusal with all that is wrong, or what is to be told nevertheless; None where nothing is.

    Of the rules `elsewhere` (`AdmissionRule/NAME`) users are warned by API servers: they need not read it twice.
    """
    if not violations:
        return None
    said = {kind: [str(one) for one in violations if one.enforcement == kind] for kind in _ENFORCEMENTS}
    return AdmissionAnswer(
        not said[ENFORCE],
        "; ".join(said[ENFORCE]),
        warnings=tuple(
            str(one)
            for one in violations
            if one.enforcement == WARN and (one.problem or f"{KIND}/{one.rule}" not in elsewhere)
        ),
        audit={"violations": "; ".join(said[AUDIT])} if said[AUDIT] else {},
    )
