"""The other engines of the language, each behind one signature: expressions and facts in, time and answers out.

Facts stand in the engine's own form before the clock starts, and programs are compiled; what is measured is a
filter and a score of each node, both results taken back into plain values.
"""

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import celpy
import celpy.adapter
from celpy.evaluation import CELEvalError

from tests.benchmarks.measure import seconds

try:
    from cel_expr_python import cel as cpp_cel
except ImportError:
    cpp_cel = None
try:
    import cel as rust_cel
except ImportError:
    rust_cel = None  # type: ignore[assignment]  # looked at before use

GO_SOURCE = Path(__file__).parent / "cel_go"
Facts = Mapping[str, Any]


class Absent(Exception):
    """The engine cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What came of a filter and a score of some nodes: nodes that pass, errors, the sum of the scores."""

    passed: int
    errors: int
    total: float

    def agrees(self, other: "Answers") -> bool:
        """The same, but for the rounding of a sum in another order."""
        same = (self.passed, self.errors) == (other.passed, other.errors)
        return same and abs(self.total - other.total) <= 1e-9 * max(abs(self.total), 1.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds per node, and the answers to all nodes asked."""

    seconds: float
    answers: Answers


def one_by_one(
    contexts: Sequence[Any],
    accepts: Callable[[Any], Any],
    scores: Callable[[Any], Any],
    error: type[Exception] | tuple[type[Exception], ...],
) -> Measured:
    """Ask an engine that takes one node at a time and raises errors."""

    def ask() -> Answers:
        passed, errors, total = 0, 0, 0.0
        for context in contexts:
            try:
                passed += accepts(context) is True
            except error:
                errors += 1
            try:
                total += scores(context)
            except error:
                errors += 1
        return Answers(passed, errors, total)

    return Measured(seconds(ask, rounds=5) / len(contexts), ask())


def cel_python(accept: str, score: str, nodes: Iterable[Facts], pod: Facts) -> Measured:
    """The Python implementation; of its two runners the one that gets `false && error` right."""
    logging.getLogger("celpy").setLevel(logging.CRITICAL)  # it would tell of every error
    limit = sys.getrecursionlimit()
    environment = celpy.Environment(runner_class=celpy.InterpretedRunner)
    sys.setrecursionlimit(limit)
    accepts, scores = (environment.program(environment.compile(text)) for text in (accept, score))
    asked = celpy.adapter.json_to_cel(dict(pod))
    contexts = [{"node": celpy.adapter.json_to_cel(dict(node)), "pod": asked} for node in nodes]
    return one_by_one(contexts, lambda it: bool(accepts.evaluate(it)), scores.evaluate, CELEvalError)


class _Failed(Exception):
    """Google's runtime gives errors as values."""


def google(accept: str, score: str, nodes: Iterable[Facts], pod: Facts) -> Measured:
    """Google's C++ runtime, from Python."""
    if cpp_cel is None:
        raise Absent("cel-expr-python is not installed")
    dyn, failed = cpp_cel.Type.DYN, cpp_cel.Type.ERROR
    environment = cpp_cel.NewEnv(variables={"node": dyn, "pod": dyn})

    def asking(text: str) -> Callable[[Any], Any]:
        program = environment.compile(text)

        def ask(context: Any) -> Any:
            found = program.eval(context)
            if found.type() == failed:
                raise _Failed
            return found.plain_value()

        return ask

    contexts = [environment.Activation({"node": node, "pod": pod}) for node in nodes]
    return one_by_one(contexts, asking(accept), asking(score), _Failed)


def rust(accept: str, score: str, nodes: Iterable[Facts], pod: Facts) -> Measured:
    """The Rust implementation, from Python."""
    if rust_cel is None:
        raise Absent("common-expression-language is not installed")
    contexts = [rust_cel.Context({"node": node, "pod": pod}) for node in nodes]
    accepts, scores = rust_cel.compile(accept).execute, rust_cel.compile(score).execute
    return one_by_one(contexts, accepts, scores, (RuntimeError, TypeError, ValueError, KeyError))


def cel_go(accept: str, score: str, nodes: Iterable[Facts], pod: Facts) -> Measured:
    """Google's Go implementation, which Kubernetes uses: a program of its own, no Python in between."""
    asked = json.dumps({"filter": accept, "score": score, "nodes": list(nodes), "pod": pod})
    ran = subprocess.run([_built()], input=asked, capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode:
        raise Absent(f"the Go program failed: {ran.stderr.strip()}")
    found = json.loads(ran.stdout)
    return Measured(
        found["nanoseconds_per_node"] * 1e-9, Answers(found["passed"], found["errors"], found["sum"])
    )


def _built() -> Path:
    """The Go program, built once for each content of its source into the user's cache."""
    go = shutil.which("go")
    if go is None:
        raise Absent("no Go here")
    digest = hashlib.sha256(
        b"".join((GO_SOURCE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go"))
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = cache / "koordpolicy" / "benchmarks" / f"cel_go-{digest.hexdigest()[:16]}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        command = [go, "build", "-mod=readonly", "-o", str(program), "."]
        built = subprocess.run(
            command, cwd=GO_SOURCE, capture_output=True, text=True, timeout=600, check=False
        )
        if built.returncode:
            raise Absent(f"cel-go does not build here: {built.stderr.strip().splitlines()[-1:]}")
    return program


@dataclass(frozen=True, slots=True)
class Peer:
    """An engine by name, and how many nodes it is asked about at most: its time per node depends little on it."""

    name: str
    measure: Callable[[str, str, Iterable[Facts], Facts], Measured]
    most: int


PEERS: tuple[Peer, ...] = (
    Peer("cel-go", cel_go, 5_000),
    Peer("Google's C++, from Python", google, 5_000),
    Peer("Rust, from Python", rust, 2_000),
    Peer("cel-python", cel_python, 200),
)
"""The fastest first."""
