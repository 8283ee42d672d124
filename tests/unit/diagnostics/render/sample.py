"""One report with everything in it, for all formats."""

from hypothesis import strategies as st

from koordpolicy.diagnostics import Diagnostic, Fix, Note, Position, Severity, Span

SUPPRESS = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: default}
spec:
  minimun: 1
  target: {cel: node.capacity.cpu * percent(65) - node.usage.prod.memory}
"""
BANDS = "kind: PriorityBand\nspec:\n\trange: {from: 5000, to: 6100}\n"

SOURCES = {
    "policies/suppress.yaml": SUPPRESS,
    "policies/bands, old.yaml": BANDS,
    "policies/clean.yaml": "{}\n",
}

KEY = Span.at("policies/suppress.yaml", 5, 3, 7)
LEFT = Span.at("policies/suppress.yaml", 6, 17, 31)

FINDINGS = (
    Diagnostic(
        "KP204",
        "`node.capacity.cpu * percent(65)` is in millicores, `node.usage.prod.memory` in bytes",
        LEFT,
        help="take the fact of the other resource: `node.usage.prod.cpu`",
        notes=(
            Note("millicores", LEFT),
            Note("bytes", Span.at("policies/suppress.yaml", 6, 51, 22)),
        ),
    ),
    Diagnostic(
        "KP104",
        "`CPUSuppress` has no key `minimun`",
        KEY,
        help="did you mean `minimum`?",
        fix=Fix("write `minimum`", KEY, "minimum"),
    ),
    Diagnostic(
        "KP401",
        "bands `batch` and `spot` overlap: both have 5900-6100",
        Span("policies/bands, old.yaml", Position(3, 2), Position(3, 31)),
        severity=Severity.WARNING,
        notes=(
            Note("`spot` begins here", Span.at("policies/elsewhere.yaml", 4, 10, 4)),
            Note("100%\r\nsure"),
            Note("set by this document", Span.at("policies/suppress.yaml", 2, 7, 11)),
        ),
    ),
    Diagnostic("KP001", "no such file", Span.at("policies/gone.yaml"), severity=Severity.NOTE),
)

_ANY = st.text(st.characters(exclude_categories=()), max_size=60)
"""Whatever Python takes for text, surrogates and all."""
_NAMES = st.sampled_from(
    [
        *SOURCES,
        "gone.yaml",
        "/etc/policies/ä.yaml",
        "a%20b\n.yaml",
        "::error::.yaml",
        "pol\udcff.yaml",
        "\x1b[2J",
    ]
) | _ANY.filter(bool)
_TEXTS = _ANY | st.text("a \n\t\r%:,`\x1b\u202e\ud800\ufffe\x9b値", max_size=200)
_PLACES = st.builds(Position, st.integers(1, 8), st.integers(1, 90))
_SPANS = st.builds(
    lambda file, one, other: Span(file, min(one, other), max(one, other)), _NAMES, _PLACES, _PLACES
)

findings = st.builds(
    Diagnostic,
    code=st.sampled_from(["KP001", "KP104", "KP204", "KP999"]),
    message=_TEXTS,
    span=_SPANS,
    severity=st.sampled_from(Severity),
    notes=st.lists(st.builds(Note, _TEXTS, st.none() | _SPANS), max_size=3).map(tuple),
    help=st.none() | _TEXTS,
    fix=st.none() | st.builds(Fix, _TEXTS, _SPANS, _TEXTS),
)
sources = st.dictionaries(_NAMES, _TEXTS, max_size=4)
