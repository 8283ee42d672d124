"""What a compiler remembers changes nothing: after any edits it says what one says that has seen none of them."""

import random
from collections.abc import Mapping
from typing import Final

import pytest

from koordpolicy.graph import Compilation, Compiler, Layer
from koordpolicy.runtime.policies.pack_cache import pack_remembering

_HEAD: Final = "apiVersion: koordpolicy.io/v1alpha1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n  {}\n"


def _document(kind: str, name: str, *lines: str) -> str:
    return _HEAD.format(kind, name, "\n  ".join(lines))


_OVERRIDE: Final = (
    "owner: platform team",
    "reason: services are slow",
    'expires: "2099-12-31"',
    "match: {nodes: {matchLabels: {pool: web}}}",
)

FILES: Final[Mapping[str, tuple[str | None, ...]]] = {
    "suppress.yaml": (
        None,
        _document("CPUSuppress", "own", "parameters: {threshold: 60%}"),
        _document("CPUSuppress", "own", "parameters: {threshold: 70%, floor: 10%}"),
        _document("CPUSuppress", "own", "parameters: {threshold: -5%}"),
        _document("CPUSuppress", "own", "parameters: {treshold: 60%}"),
        _document("CPUSuppress", "own", "target: {cel: node.capacity.cpu * constants.share}"),
        _document("CPUSuppress", "own", "target: {cel: kept(node.capacity.cpu) - node.usage.system.cpu}"),
        _document("CPUSuppress", "own", "target: {cel: node.capacity.memory}"),
    ),
    "library.yaml": (
        None,
        _document(
            "Library", "own",
            "constants: {share: 40%}",
            "functions: [{name: kept, parameters: [{name: c, type: millicores}], expression: c * percent(50)}]",
        ),
        _document(
            "Library", "own",
            "constants: {share: 45%}",
            "functions: [{name: kept, parameters: [{name: c, type: millicores}], expression: c * constants.share}]",
        ),
        _document("Library", "own", "constants: {share: [1, 2]}"),
    ),
    "band.yaml": (
        None,
        _document("PriorityBand", "batch", "default: 5100"),
        _document("PriorityBand", "batch", "range: {from: 4000, to: 5999}"),
        _document(
            "PriorityBand", "batch", "resources: {mode: Translated, names: {cpu: example.com/cpu, memory: example.com/memory}}"
        ),
    ),
    "gangs.yaml": (
        None,
        _document("GangScheduling", "own", "complete: false"),
        _document("GangScheduling", "own", "parameters: {defaultTimeout: 0s}"),
        _document("GangScheduling", "own", "parameters: {joinsRunning: true}"),
    ),
    "profile.yaml": (
        None,
        _document("SchedulingProfile", "koord-scheduler", "filters: [{name: NodeResourcesFit, enabled: false}]"),
        _document(
            "SchedulingProfile", "koord-scheduler",
            "filters: [{name: NodeResourcesFit, enabled: {cel: \"pod.band != 'batch'\"}}]",
        ),
    ),
    "exception.yaml": (
        None,
        _document("PolicyException", "web", *_OVERRIDE, "overrides: {CPUSuppress.parameters.threshold: 50%}"),
        _document("PolicyException", "web", *_OVERRIDE, "overrides: {CPUSuppress.parameters.threshold: much}"),
    ),
    "invariant.yaml": (
        None,
        _document(
            "Invariant", "most",
            "decisions: {target: CPUSuppress.target}",
            "require: decisions.target <= node.capacity.cpu",
        ),
    ),
}  # fmt: skip
"""What each file may hold; None for no file."""

_BUNDLE: Final = _document("PolicyBundle", "own", "extends: [koordinator]")


def _told(found: Compilation) -> dict[str, object]:
    """All that a compilation says, but for where in memory it stands."""
    graph = found.graph
    decisions = {} if graph is None else {str(key): graph.expression(str(key)) for key in graph.decisions}
    rules = (
        {}
        if graph is None
        else {
            str(key): [(rule.document, rule.layer, rule.span, rule.text) for rule in one.rules]
            for key, one in graph.decisions.items()
        }
    )
    return {
        "found": [(one.code, one.span, one.message, one.help, one.notes) for one in found.found],
        "digest": None if graph is None else graph.digest,
        "classes": None if graph is None else graph.classes,
        "decisions": decisions,
        "rules": rules,
        "invariants": [(one.name, one.where, one.require) for one in found.invariants],
    }


def _compiled(compiler: Compiler, files: Mapping[str, str]) -> dict[str, object]:
    return _told(compiler.compile(Layer("own", {"koordpolicy.yaml": _BUNDLE, **files})))


@pytest.mark.parametrize("seed", range(2))
def test_edit_after_edit(seed: int) -> None:
    chance = random.Random(seed)
    files: dict[str, str] = {}
    remembering = pack_remembering()
    for _ in range(6):
        for file in chance.sample(sorted(FILES), 2):
            text = chance.choice(FILES[file])
            files.pop(file, None)
            if text is not None:
                files[file] = text
        ours = _compiled(remembering, files)
        fresh = _compiled(pack_remembering(), files)
        for what, said in fresh.items():
            assert ours[what] == said, (what, files)


def test_there_and_back() -> None:
    remembering = pack_remembering()
    before = _compiled(remembering, {})
    for file, texts in FILES.items():
        for text in texts:
            if text is not None:
                remembering.compile(Layer("own", {"koordpolicy.yaml": _BUNDLE, file: text}))
        assert _compiled(remembering, {}) == before, file
