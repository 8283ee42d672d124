"""Results of policy tests as text, JSON and JUnit XML, coverage as LCOV or Cobertura XML: a file a format, one table names them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from koordpolicy.cli.results.cobertura import render_cobertura
from koordpolicy.cli.results.json import render_json
from koordpolicy.cli.results.junit import render_junit
from koordpolicy.cli.results.lcov import render_lcov
from koordpolicy.cli.results.shown import ShownRun
from koordpolicy.cli.results.text import render_text

RENDERERS: Mapping[str, Callable[[ShownRun], str]] = MappingProxyType(
    {
        "text": render_text,
        "json": render_json,
        "junit": render_junit,
        "lcov": render_lcov,
        "cobertura": render_cobertura,
    }
)
"""The formats of `koordpolicy test --output`."""

__all__ = ["RENDERERS", "ShownRun"]
