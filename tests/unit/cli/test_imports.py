"""What a command does not need it does not import: that is most of the time a short one takes."""

import json
import subprocess
import sys

import pytest

ASK = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from koordpolicy.cli.start import process
sys.exit(process())
"""
HEAVY = ("aiohttp", "asyncio", "kubernetes", "numpy", "pydantic", "re2", "ruamel", "watchfiles")
"""Third parties, and what of Python's own is dear."""

NEVER = {
    "--help": (*HEAVY, "koordpolicy.graph", "koordpolicy.language", "koordpolicy.cli.check"),
    "--version": (*HEAVY, "koordpolicy.graph", "koordpolicy.language", "koordpolicy.cli.check"),
}


def imported(*words: str) -> set[str]:
    """All modules that are there after a command."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, *words], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stderr.splitlines()[-1])
    return set(found)


@pytest.mark.parametrize("words", NEVER)
def test_what_is_not_needed_is_not_imported(words: str) -> None:
    assert imported(*words.split()) & set(NEVER[words]) == set()
