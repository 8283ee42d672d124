"""What a comparison of revisions says of a change, held against inputs that are drawn by other draws."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from koordpolicy import resources
from koordpolicy.graph import Compilation, Compiler, Layer, RuleGraph
from koordpolicy.graph.diff import compare
from koordpolicy.graph.diff.compare import known_texts
from koordpolicy.graph.proof import Differ
from koordpolicy.graph.proof.draws import Draws
from koordpolicy.graph.proof.pools import Pools
from koordpolicy.graph.proof.reads import reads_of
from koordpolicy.graph.proof.search import Search
from koordpolicy.source import read_tree
from tests.mutations.draw import Mutation, mutations

PACK = "koordinator"
BUNDLE = "bundle"
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

    `wrong` are answers that inputs or the engine contradict.
    """

    source: str
    mutation: Mutation
    says: str
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
        """Those that compile and change an expression."""
        return [one for one in self.judgements if one.says in ("differs", "equal", "gave up")]


def _read(folder: Path) -> dict[str, str]:
    return dict(read_tree([str(folder)]).files)


@cache
def sources() -> tuple[Source, ...]:
    """The pack, the examples, and a bundle of ours."""
    examples = resources.examples()
    folders = {path.parent for path in sorted(Path(examples).rglob("koordpolicy.yaml"))}
    found = [Source("policies", _read(Path(resources.policies())))]
    found += [Source(f"examples/{folder.relative_to(examples)}", _read(folder)) for folder in sorted(folders)]
    found.append(Source("tests/mutations/bundle", _read(Path(__file__).with_name("bundle"))))
    return tuple(found)


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

    def mutations(self) -> Iterator[Mutation]:
        """All changes of the source."""
        return mutations(self.compilation, self.source.layer)

    def judge(self, mutation: Mutation) -> Judgement:
        """What the comparison says, and whether that is so."""
        changed = self._compiled({**self.source.files, mutation.file: mutation.text}).graph
        if changed is None:
            return Judgement(self.source.name, mutation, "refused")
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
        return Judgement(self.source.name, mutation, says, took, open_ones, tuple(wrong))


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
