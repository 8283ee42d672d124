"""A Rollout document by which a tuned revision goes live."""

from collections.abc import Iterable
from typing import Final

from koordpolicy.language.kinds import API_VERSION, KINDS

_TEXT: Final = """\
# How tuned values go live: compared first, then on one node of twenty, on one of four, on all. This document decides about the
# commit after the one it comes with, so commit it before the values.
apiVersion: {version}
kind: Rollout
metadata:
  name: tuned
  annotations:
    koordpolicy.io/description: Tuned values go live by steps.
spec:
{kinds}  steps:
    - name: shadow
      shadow: {{sample: 10%}}
      hold: 15m
    - name: few
      canary: {{share: 5%}}
      shadow: {{sample: 10%}}
      hold: 30m
    - name: quarter
      canary: {{share: 25%}}
      hold: 30m
  guards:
    - name: sound
      require: {{cel: rollout.failures == 0}}
      reason: {{cel: "string(rollout.failures) + ' decisions failed that did not before'"}}
    - name: taken
      require: {{cel: rollout.instances.rejected == 0}}
      reason: some processes cannot take it
      patience: 5m
      action: Pause
"""


def rollout_document(changed: Iterable[str]) -> str:
    """The document, for changes of these kinds; kinds that nobody asks are left out, as they have no decisions."""
    asked = sorted({kind for kind in changed if KINDS[kind].components})
    listed = "".join(f"    - {kind}\n" for kind in asked)
    return _TEXT.format(version=API_VERSION, kinds=f"  kinds:\n{listed}" if asked else "")
