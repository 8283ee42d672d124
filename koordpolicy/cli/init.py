"""`koordpolicy init`: the beginnings of a repository of policies."""

import argparse
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.flags.init import SERVICES
from koordpolicy.cli.output_files import put_below, refuse_links
from koordpolicy.cli.terminal import Terminal

_EVERYWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "koordpolicy.yaml": "koordpolicy.yaml",
        "policies/pool.yaml": "pool.yaml",
        "tests/pool.test.yaml": "pool.test.yaml",
        "README.md": "README.md",
        ".pre-commit-config.yaml": "pre-commit-config.yaml",
    }
)
_NAME: Final = "NAME"
"""What stands in the files for the name of the bundle."""

_LONGEST_NAME: Final = 63


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Write what is not there yet."""
    root = Path(arguments.directory)
    name = arguments.name if arguments.name is not None else _named_after(root)
    if not re.fullmatch("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", name) or len(name) > _LONGEST_NAME:
        raise CannotRunError(f"`{name}` is no name of a bundle: it has lower-case letters, digits and `-`")
    try:
        for path, text in _files(arguments.ci):
            file = root / path
            refuse_links(root, file)
            if file.is_symlink() and not file.exists():
                raise CannotRunError(f"`{file}` is a link to nothing: remove it")
            if file.exists():
                terminal.say(f"kept  {file}")
                continue
            terminal.say(f"wrote {put_below(root, path, text.replace(_NAME, name))}")
    except OSError as error:
        raise CannotRunError(f"`{error.filename}` cannot be written: {error.strerror}") from None
    return OK


def _named_after(root: Path) -> str:
    plain = re.sub("[^a-z0-9]+", "-", root.resolve().name.lower())[:_LONGEST_NAME].strip("-")
    return plain or "policies"


def _files(service: str) -> Iterator[tuple[str, str]]:
    """Path and text of what is written."""
    chosen = SERVICES.values() if service == "all" else [SERVICES[service]]
    starter = files("koordpolicy.cli").joinpath("starter")
    for table in (_EVERYWHERE, *chosen):
        for path, source in table.items():
            yield path, starter.joinpath(source).read_text(encoding="utf-8")
