"""A difference between revisions on its way to people and programs: one file an output format."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from koordpolicy.cli.difference.json import render_json
from koordpolicy.cli.difference.markdown import render_markdown, render_refused
from koordpolicy.cli.difference.shown import (
    AdmissionKind,
    FailedOn,
    LaterOnCluster,
    OnAdmission,
    OnCluster,
    ShownDifference,
    SimulatedEffect,
)
from koordpolicy.cli.difference.text import render_text

RENDERERS: Mapping[str, Callable[[ShownDifference], str]] = MappingProxyType(
    {"text": render_text, "json": render_json, "markdown": render_markdown}
)
"""Every format by its name."""

__all__ = [
    "RENDERERS",
    "AdmissionKind",
    "FailedOn",
    "LaterOnCluster",
    "OnAdmission",
    "OnCluster",
    "ShownDifference",
    "SimulatedEffect",
    "render_refused",
]
