"""What to do about a revision that does not decide: said for each reason that there is."""

from koordpolicy.runtime.policies.revisions import REMEDIES, Reason


def test_each_reason_to_reject_a_revision_has_a_remedy() -> None:
    assert REMEDIES.keys() == set(Reason) - {Reason.SUCCEEDED, Reason.STARTED_FROM_CACHE}
    assert all(REMEDIES.values())
