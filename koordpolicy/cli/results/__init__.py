"""Results of policy tests as text, JSON and JUnit XML: one file a format, one table that names them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from koordpolicy.cli.results.json import render_json
from koordpolicy.cli.results.junit import render_junit
from koordpolicy.cli.results.shown import ShownRun
from koordpolicy.cli.results.text import render_text

RENDERERS: Mapping[str, Callable[[ShownRun], str]] = MappingProxyType(
    {"text": render_text, "json": render_json, "junit": render_junit}
)
"""The formats of `koordpolicy test --output`."""

__all__ = ["RENDERERS", "ShownRun"]
