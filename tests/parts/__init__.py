"""The real programs that tests run: how each is found, else had, started and stopped.

`find("kube-apiserver")` gives the path of a program and raises `Missing` where it cannot be had; the fixture
`part` does so in a test and skips it by name. `python -m tests.parts` prepares all of them with progress, `--list`
says what is there.

Where a program comes from, in this order: the directory `KUBEBUILDER_ASSETS`, `PATH` (if new enough), and the
cache `${XDG_CACHE_HOME:-~/.cache}/koordpolicy/parts`, which is filled once: by Go from the pinned modules in
`go/`, or by apt-get with Debian's package, unpacked there and never installed.
"""

from tests.parts.finding import Found, Missing, Part
from tests.parts.table import PARTS, find, prepare

__all__ = ["PARTS", "Found", "Missing", "Part", "find", "prepare"]
