"""What a comparison of revisions says of a change, held against inputs that are drawn by other draws."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from koordpolicy import resources
from koordpolicy.graph import Compilation, Compiler, Layer, RuleGraph
from koordpolicy.graph.diff import compare
from koordpolicy.graph.diff.compare import known_texts
from koordpolicy.graph.mutation import Mutant, mutants_of
from koordpolicy.graph.proof import Differ
from koordpolicy.graph.proof.digest import digest_of
from koordpolicy.graph.proof.draws import Draws
from koordpolicy.graph.proof.pools import Pools
from koordpolicy.graph.proof.reads import reads_of
from koordpolicy.graph.proof.search import Search
from koordpolicy.source import read_tree
from tests.conftest import REPOSITORY

PACK = "koordinator"
BUNDLE = "bundle"
GUIDE = REPOSITORY / "schemas" / "guide"
_MISTAKEN = frozenset(("units.md",))
"""Pages that end with a mistake, to show what is said of it."""

_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (?P<name>[\w/.-]+\.yaml)\n")
_REMOVED = re.compile(r"^\$ rm (?P<names>.*)$", re.MULTILINE)

SAMPLES = 2_000
"""Inputs on which decisions that are proved equal are asked."""

_ABOVE = """apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: above}
spec: {extends: [koordinator]}
"""


@dataclass(frozen=True)
class Source:
    """A set of policies to change: the pack itself, or a bundle above it."""

    name: str
    files: Mapping[str, str]

    @property
    def layer(self) -> str:
        return PACK if self.name == "policies" else BUNDLE


@dataclass
class Judgement:
    """What was said of one change: refused, unchanged, settings, differs, equal, or gave up.

    `meaning` is equal for changes that compile to the same expressions. `wrong` are answers that inputs or the engine
    contradict.
    """

    source: str
    operator: str
    what: str
    says: str
    meaning: str = ""
    seconds: float = 0.0
    gave_up: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


@dataclass
class Report:
    """All judgements together."""

    judgements: list[Judgement] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        return Counter(one.says for one in self.judgements)

    @property
    def judged(self) -> list[Judgement]:
        """Those that compile and change an expression, one of each meaning."""
        real = (one for one in self.judgements if one.says in ("differs", "equal", "gave up"))
        return list({one.meaning: one for one in real}.values())

    @property
    def repeated(self) -> int:
        """How many mean the same as another one."""
        return sum(one.says in ("differs", "equal", "gave up") for one in self.judgements) - len(self.judged)


def _read(folder: Path) -> dict[str, str]:
    return dict(read_tree([str(folder)]).files)


@cache
def sources() -> tuple[Source, ...]:
    """The pack, the examples, a bundle of ours, and those of the guide, a page each."""
    examples = resources.examples()
    folders = {path.parent for path in sorted(Path(examples).rglob("koordpolicy.yaml"))}
    found = [Source("policies", _read(Path(resources.policies())))]
    found += [Source(f"examples/{folder.relative_to(examples)}", _read(folder)) for folder in sorted(folders)]
    found.append(Source("tests/mutations/bundle", _read(Path(__file__).with_name("bundle"))))
    for page in sorted(GUIDE.glob("*.md")):
        if page.name not in _MISTAKEN:
            found += [Source(f"guide/{page.name}", files) for files in _of_page(page.read_text("utf-8"))]
    return tuple(found)


def _of_page(text: str) -> list[dict[str, str]]:
    """The bundles that stand in the end where a page of the guide is followed."""
    files: dict[str, str] = {}
    for block in _BLOCK.finditer(text):
        named = _FILE.match(block["body"])
        if block["language"] == "yaml" and named is not None:
            files[named["name"]] = block["body"]
        for removed in _REMOVED.finditer(block["body"]):
            for name in removed["names"].split():
                files.pop(name, None)
    folders = [Path(name).parent for name in files if Path(name).name == "koordpolicy.yaml"]
    return [
        {Path(name).name: body for name, body in files.items() if Path(name).parent == folder}
        for folder in folders
    ]


class Bench:
    """Compiles and compares the changes of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._pack: Mapping[str, str] = sources()[0].files
        self._compiler = Compiler(lambda name: Layer(PACK, dict(self._pack)) if name == PACK else None)
        found = self._compiled(source.files)
        assert found.graph is not None, [one.message for one in found.found]
        self.compilation, self.graph = found, found.graph

    def _compiled(self, files: Mapping[str, str]) -> Compilation:
        if self.source.layer == PACK:
            self._pack = files
            return self._compiler.compile(Layer(BUNDLE, {"koordpolicy.yaml": _ABOVE}))
        return self._compiler.compile(Layer(BUNDLE, dict(files)))

    @cached_property
    def mutants(self) -> Sequence[Mutant]:
        """All changes of the source."""
        own = (unit for unit in self.compilation.units if unit.layer_name == self.source.layer)
        return mutants_of(own, thorough=True)

    def judge(self, mutant: Mutant) -> Judgement:
        """What the comparison says, and whether that is so."""
        what = f"{mutant.unit.id} {mutant.span.start.line}: {mutant.before} -> {mutant.after}"
        judgement = partial(Judgement, self.source.name, str(mutant.operator), what)
        changed = self._compiled({**self.source.files, mutant.file: mutant.text}).graph
        if changed is None:
            return judgement("refused")
        start = perf_counter()
        difference = compare(self.graph, changed)
        took = perf_counter() - start
        wrong = [
            f"{name} is not equal on {where}"
            for name in difference.equal
            if (where := _counterexample(self.graph, changed, name)) is not None
        ]
        for change in difference.decisions:
            examples = [edit.example for edit in change.edits] + [effect.example for effect in change.effects]
            wrong += [
                f"{change.decision}: an example that shows nothing"
                for example in examples
                if example is not None and example.old.same(example.new)
            ]
        says = (
            "differs"
            if difference.decisions
            else "gave up"
            if difference.open
            else "equal"
            if difference.equal
            else "settings"
            if difference.differs
            else "unchanged"
        )
        open_ones = tuple(f"{one.decision}: {one.why}" for one in difference.open)
        return judgement(says, self._meaning(changed), took, open_ones, tuple(wrong))

    def _meaning(self, changed: RuleGraph) -> str:
        names = [name for name in map(str, changed.decisions) if self._is_other(changed, name)]
        return " ".join((*names, digest_of([changed.expression(name) for name in names])))

    def _is_other(self, changed: RuleGraph, name: str) -> bool:
        return name not in self.graph or self.graph.expression(name) != changed.expression(name)


def identity(mutant: Mutant) -> str:
    """What is equal for the same change of the same document, whichever source it stands in."""
    return json.dumps([mutant.unit.document.data, mutant.path, mutant.value], default=str, sort_keys=True)


def _counterexample(old: RuleGraph, new: RuleGraph, name: str) -> str | None:
    """An input among many that are drawn on which two decisions differ after all."""
    if name not in old or name not in new:
        return None  # one is the default of the other's slot, a constant
    goal = Differ(
        old.expression(name), new.expression(name), partial(_ask, old, name), partial(_ask, new, name)
    )
    reads = reads_of(goal.expressions)
    chance = Draws(sha256(name.encode()).digest())
    found = Search(goal, reads, Pools(reads, known_texts(old, new)), chance).drawn(SAMPLES)
    return None if found is None else str(found)


def _ask(graph: RuleGraph, name: str, records: Mapping[str, Any]) -> Any:
    roots = graph.decision(name).roots
    return graph.program(name).call(*(records.get(root, {}) for root in roots))
