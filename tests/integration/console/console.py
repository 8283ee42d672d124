"""The console as a user starts it: a process of its own, on a free port."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.conftest import REPOSITORY


@contextmanager
def console(*flags: str) -> Iterator[str]:
    """Its address, for as long as the block runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "koordpolicy.cli", "console", "--http", "127.0.0.1:0", *flags],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        said = process.stdout.readline()
        assert "the console is at" in said, process.stderr.read()
        yield said.split()[4].rstrip("/")
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0
