"""`python -m koordpolicy.cli`."""

import sys

from koordpolicy.cli.main import process

sys.exit(process())
