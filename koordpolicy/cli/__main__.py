"""`python -m koordpolicy.cli`."""

import sys

from koordpolicy.cli.start import process

sys.exit(process())
