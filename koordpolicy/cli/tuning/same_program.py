"""Whether programs on two machines simulate alike: the versions of what decides about a report."""

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

import koordpolicy
from koordpolicy import resources


@cache
def versions() -> Mapping[str, str]:
    """What must be the same for equal seeds to give equal reports, with the version that runs here, as plain data."""
    return {
        "koordpolicy": f"{koordpolicy.__version__} ({_content()})",
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "NumPy": np.__version__,  # all chance is drawn by it
    }


def _content() -> str:
    """A digest of the code and the built-in packs, which two states of one version tell apart."""
    digest = hashlib.sha256()
    roots = ((Path(koordpolicy.__file__).parent, "*.py"), (resources.policies(), "*.yaml"))
    for root, pattern in roots:
        for file in sorted(root.rglob(pattern), key=lambda one: one.relative_to(root).as_posix()):
            digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


def differences(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """What differs, in words."""
    return [
        f"{name} {theirs.get(name, 'of no known version')} rather than {version}"
        for name, version in mine.items()
        if theirs.get(name) != version
    ]
