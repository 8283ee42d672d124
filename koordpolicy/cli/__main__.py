"""`python -m koordpolicy.cli`."""

import sys

from koordpolicy.cli.main import main

sys.exit(main())
