"""The reference manual in Markdown, made from the declarations themselves.

One page a subject: kinds, decisions, errors, facts, functions, diagnostics, commands. Nothing is written
here that a declaration says already; who wants another sentence in the manual changes the meaning
of the kind, slot, fact, function, code or argument.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from koordpolicy.language.manual.commands import commands_page
from koordpolicy.language.manual.decisions import decisions_page
from koordpolicy.language.manual.diagnostics import diagnostics_page
from koordpolicy.language.manual.errors import errors_page
from koordpolicy.language.manual.facts import facts_page
from koordpolicy.language.manual.functions import functions_page
from koordpolicy.language.manual.kinds import kinds_page
from koordpolicy.language.manual.markdown import link_list
from koordpolicy.language.manual.plugins import plugins_page

__all__ = ["manual", "write_manual"]


def manual(parser: argparse.ArgumentParser, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Name and text of every page; `parser` is that of the whole command line, `more` are pages on what stands above."""
    pages = {
        "kinds.md": kinds_page(),
        "decisions.md": decisions_page(),
        "errors.md": errors_page(),
        "facts.md": facts_page(),
        "functions.md": functions_page(),
        "plugins.md": plugins_page(),
        "diagnostics.md": diagnostics_page(),
        "commands.md": commands_page(parser),
        **more,
    }
    titles = {name: text.partition("\n")[0].removeprefix("# ") for name, text in pages.items()}
    index = (
        "# Manual\n\nThe [guide](../guide/README.md) is where to begin. These pages are generated with the schemas: "
        "`koordpolicy schema --write schemas`.\n\n"
    ) + link_list(titles)
    return {"README.md": index, **pages}


def write_manual(
    directory: Path, parser: argparse.ArgumentParser, more: Mapping[str, str] = MappingProxyType({})
) -> list[Path]:
    """Write all pages (see `manual`) into a directory, made if need be; gives the files. Raises `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in manual(parser, more).items():
        path = directory / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
