"""Times in fact records, as the values that expressions compute with."""

from typing import Final

from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.model.facts import Times

TIMES: Final = Times(Timestamp, Duration)
"""Hand this to the fact builders of `model`."""
