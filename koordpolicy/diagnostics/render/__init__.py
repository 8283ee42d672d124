"""Findings as text: one file a format, one table that names them.

A renderer is a pure function of a `Report`. Whether output goes to a terminal, and how wide that is, the
command line knows and passes on.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from koordpolicy.diagnostics.render.github import render_github
from koordpolicy.diagnostics.render.gitlab import render_gitlab
from koordpolicy.diagnostics.render.json import render_json
from koordpolicy.diagnostics.render.report import DEFAULT_LIMIT, DEFAULT_WIDTH, Report
from koordpolicy.diagnostics.render.sarif import render_sarif
from koordpolicy.diagnostics.render.text import render_text
from koordpolicy.diagnostics.value import Diagnostic

__all__ = ["DEFAULT_LIMIT", "DEFAULT_WIDTH", "RENDERERS", "Renderer", "Report", "render"]

Renderer = Callable[[Report], str]


def _render_junit(report: Report) -> str:
    from koordpolicy.diagnostics.render.junit import render_junit  # noqa: PLC0415  # an XML library, which few reports need

    return render_junit(report)


RENDERERS: Mapping[str, Renderer] = MappingProxyType(
    {
        "text": render_text,
        "json": render_json,
        "sarif": render_sarif,
        "github": render_github,
        "gitlab": render_gitlab,
        "junit": _render_junit,
    }
)


def render(
    format: str,
    diagnostics: Iterable[Diagnostic],
    sources: Mapping[str, str],
    *,
    colour: bool = False,
    width: int = DEFAULT_WIDTH,
    limit: int = DEFAULT_LIMIT,
    files: Iterable[str] | None = None,
) -> str:
    """The findings in one of the formats of `RENDERERS`, ending with a newline unless there is nothing to say.

    `sources` maps each file that was read, by the name that spans use, to its text; excerpts come from it, and
    `files` are those that were looked at (default: all of them), which junit reports as passed without findings. `colour` and `width` (columns, 0 for no wrapping) matter
    to text only. At most `limit` findings are shown, errors first choice, and the rest is counted; 0 shows all.
    Raises `ValueError` for an unknown format.
    """
    renderer = RENDERERS.get(format)
    if renderer is None:
        raise ValueError(f"unknown format `{format}`, known are {', '.join(RENDERERS)}")
    return renderer(Report.of(diagnostics, sources, files, colour=colour, width=width, limit=limit))
