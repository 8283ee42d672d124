"""Where the files lie that ship beside the code: built-in policies, schemas, examples.

In a checkout they stand at the top, where people look for them; a wheel carries them inside the
package. This module knows both places and nothing else.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE / "_data", _PACKAGE.parent)


class MissingResourceError(FileNotFoundError):
    """The installation lacks files that belong to it. Installing again mends it."""


def policies() -> Path:
    """The directory of the built-in policy packs."""
    return _directory("policies")


def examples() -> Path:
    """The directory of the runnable examples."""
    return _directory("examples")


def schemas() -> Path:
    """The directory of the JSON Schemas and the manual."""
    return _directory("schemas")


def _directory(name: str) -> Path:
    for place in _PLACES:
        if (place / name).is_dir():
            return place / name
    looked = " or ".join(str(place / name) for place in _PLACES)
    raise MissingResourceError(f"no directory {looked}: this installation of koordpolicy is not complete")
