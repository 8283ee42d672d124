"""What `import` and `export` share: objects read from files, the table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from koordpolicy.cli.command import CannotRunError
from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph.exchange.documents import Taken
from koordpolicy.language.documents.manifests import read_manifests


def read_objects(files: Sequence[str]) -> list[Mapping[str, Any]]:
    """The objects of files, those of lists one by one. Raises `CannotRunError`."""
    found: list[Mapping[str, Any]] = []
    for file in files:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CannotRunError(f"`{file}` cannot be read: {error}") from None
        problems = Diagnostics()
        for document in read_manifests(file, text, problems):
            data = document.data
            items = data.get("items")
            found.extend(
                one for one in (items if isinstance(items, list) else [data]) if isinstance(one, Mapping)
            )
        if problems.has_errors:
            first = next(iter(problems))
            raise CannotRunError(f"{file}:{first.span.start.line}: {first.message}")
    return found


def table_data(table: Sequence[Taken]) -> list[dict[str, str]]:
    """The rows for JSON."""
    return [
        {
            key: value
            for key, value in (("from", row.source), ("to", row.decision), ("reason", row.reason))
            if value
        }
        for row in table
    ]


def table_text(table: Sequence[Taken]) -> str:
    """The rows for people: what was taken, then what was not, with a count."""
    taken = [row for row in table if row.decision]
    left = [row for row in table if row.reason]
    lines = [f"{row.source}\n  -> {row.decision}" for row in taken]
    lines += [f"{row.source}\n  not taken: {row.reason}" for row in left]
    return "\n".join([*lines, f"{len(taken)} taken, {len(left)} not"])
