"""Least privilege, shown.

    KOORDPOLICY_AUDIT=/tmp/audit make test      # servers tell what was asked for, and by which role
    python -m tests.roles asked /tmp/audit      # writes needs.yaml, and says what no test asked for
    python -m tests.roles without [WORD ...]    # takes each permission away in turn, and runs the tests that asked for it

`without` takes words that a permission must contain, such as `agent`, and ends with 1 where some tests pass all the same.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.parts.apiserver import AUDIT
from tests.parts.deployed import WITHOUT
from tests.roles.asked import asked_for, refused
from tests.roles.permissions import Permission, exists, granted, read_needs, write_needs

_SECONDS = 600


def asked(folder: Path) -> int:
    """Write the table anew; what an earlier run found stays where this one did not see it."""
    permissions = set(granted())
    found = asked_for(folder, permissions)
    before = {
        one: tuple(file for file in files if exists(file))
        for one, files in read_needs().items()
        if one in permissions
    }
    write_needs({one: files for one, files in {**before, **found}.items() if one in permissions and files})
    for one in sorted(permissions - {*before, *found}):
        print(f"no test asked for: {one}")
    for one in sorted(found.keys() - permissions):
        print(f"not in deploy/rbac: {one}, asked for by {', '.join(found[one])}")
    return 0


def without(words: list[str]) -> int:
    """Run the tests of each permission without it; gives 1 where all of them pass."""
    passed = []
    for one, files in sorted(read_needs().items()):
        if not all(word in str(one) for word in words):
            continue
        failing = next((file for file in files if _fails(one, file)), None)
        print(f"{one}: {f'{failing} fails' if failing else 'NO TEST FAILS'}", flush=True)
        if failing is None:
            passed.append(one)
    return 1 if passed else 0


def _fails(permission: Permission, file: str) -> bool:
    """Whether a test fails for want of it: what is missing was refused, or the test passes with it. A machine too busy is no answer."""
    with tempfile.TemporaryDirectory() as folder:
        if _passes(file, {WITHOUT: str(permission), AUDIT: folder}):
            return False
        return (permission.verb, permission.resource) in refused(Path(folder)) or _passes(file, {})


def _passes(file: str, environment: Mapping[str, str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file]
    with suppress(subprocess.TimeoutExpired):
        ran = subprocess.run(
            command,
            cwd=REPOSITORY,
            env={**os.environ, **environment},
            timeout=_SECONDS,
            check=False,
            stdout=subprocess.DEVNULL,
        )
        return ran.returncode != 1
    return False


def main(words: list[str]) -> int:
    """The command."""
    if words[:1] == ["asked"] and len(words) == 2:  # the word and the folder
        return asked(Path(words[1]))
    if words[:1] == ["without"]:
        return without(words[1:])
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
