"""The runs of the benchmark, each kept in a file as soon as it is done, so that they can be had in pieces and by several processes.

A run counts as long as what it was made with is the same: the code, the policies, the trace. Others stay where they are.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import koordpolicy
from tests.benchmarks.gpu.placing import ARRIVING, MEASURES, compiled, curve, place_all
from tests.benchmarks.gpu.trace import read_nodes, read_pods, usual_sorts

_LAST: Final = round(100 * ARRIVING)
_OURS: Final = (Path(koordpolicy.__file__).parent, Path(__file__).parent)


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """What is run: the pods of a workload in the order of a seed, placed by a policy."""

    workload: str
    policy: str
    seed: int

    @property
    def file(self) -> str:
        """The name of the file that it is kept in."""
        return f"{self.workload}.{self.policy}.{self.seed}.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `measured` has what is measured by percent arrived, from 0 on; `failed` the pods that found no node, by class;
    `seconds` are of CPU.
    """

    measured: Mapping[str, Sequence[float]]
    failed: Mapping[str, int]
    arrivals: int
    seconds: float


@cache
def made_with(folder: Path) -> str:
    """What runs on the trace of a folder are made with, in short."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(file for root in _OURS for file in root.rglob("*") if file.suffix in (".py", ".yaml")):
        digest.update(str(file.name).encode() + file.read_bytes())
    for file in sorted(folder.glob("openb_*.csv")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def outcomes(
    runs: Iterable[Run], folder: Path, kept: Path, *, processes: int, until: float | None
) -> dict[Run, Outcome]:
    """What came of these runs: read where they are kept, else run now and kept.

    `until` is when no more are begun (by `time.monotonic`; None: all are run): then those that are left are missing.
    """
    kept = kept / made_with(folder)
    found: dict[Run, Outcome] = {}
    left: list[Run] = []
    for one in runs:
        known = _read(kept / one.file)
        if known is None:
            left.append(one)
        else:
            found[one] = known
    for number, (one, outcome) in enumerate(_run(left, folder, processes, until), 1):
        _write(kept / one.file, outcome)
        found[one] = outcome
        said = f"{one.workload}, {one.policy}, seed {one.seed}: {outcome.seconds:.1f} s"
        print(f"gpu: {number} of {len(left)}: {said}", file=sys.stderr, flush=True)
    return found


def _run(
    left: Sequence[Run], folder: Path, processes: int, until: float | None
) -> Iterator[tuple[Run, Outcome]]:
    waiting = iter(left)
    going: dict[Future[Outcome], Run] = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        while True:
            while len(going) < processes and (until is None or time.monotonic() < until):
                following = next(waiting, None)
                if following is None:
                    break
                going[pool.submit(_outcome, following, folder)] = following
            if not going:
                return
            for done in wait(going, return_when=FIRST_COMPLETED).done:
                yield going.pop(done), done.result()


def _outcome(one: Run, folder: Path) -> Outcome:
    nodes, pods = read_nodes(folder), read_pods(folder, one.workload)
    graph = compiled(one.policy, json.dumps(usual_sorts(pods)))
    begin = time.process_time()
    course = place_all(graph, nodes, pods, one.seed)
    spent = time.process_time() - begin
    measured = {measure: curve(course.points, measure, _LAST) for measure in MEASURES}
    return Outcome(measured, course.failed, len(course.points), spent)


def _read(file: Path) -> Outcome | None:
    try:
        return Outcome(**json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def _write(file: Path, outcome: Outcome) -> None:
    """In one go: who is stopped meanwhile leaves no half of a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(f".{os.getpid()}")
    said = {
        "measured": outcome.measured,
        "failed": outcome.failed,
        "arrivals": outcome.arrivals,
        "seconds": outcome.seconds,
    }
    aside.write_text(json.dumps(said), encoding="utf-8")
    aside.replace(file)
