"""The work of one process of a run."""

import multiprocessing
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.differential.cases import Source, to_json
from tests.differential.referees import PARTS, Referee
from tests.differential.run import Run, Totals
from tests.parts import Missing, find

BATCH = 250
MOST_KEPT = 2_000
"""Disagreements after which a run ends."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one process does: the seed, so many expressions, families, what is asked, and where it writes."""

    seed: int
    count: int
    families: Sequence[str]
    asked: Sequence[str]
    output: Path


def visited(share: Share) -> Totals:
    """Draw cases, ask everything about them, write what disagrees as it is found."""
    programs: list[Referee] = []
    for name in share.asked:
        if name in PARTS:
            try:
                programs.append(Referee(name, find(name).path))
            except Missing as missing:
                print(f"without {name}: {missing}", file=sys.stderr)
    run, source = Run(share.asked, programs), Source(share.seed, share.families)
    begin, told, written = time.perf_counter(), 0, 0
    parent = multiprocessing.parent_process()
    while run.totals.expressions < share.count and len(run.totals.disagreements) < MOST_KEPT:
        if parent is not None and not parent.is_alive():
            break  # nobody is left to tell
        run.visit([source.case() for _ in range(min(BATCH, share.count - run.totals.expressions))])
        for found in run.totals.disagreements[written:]:
            file = share.output / f"case-{share.seed}-{written}.json"
            file.write_text(to_json(found.case, str(found)), encoding="utf-8")
            written += 1
        if run.totals.expressions - told >= 20 * BATCH:
            told, spent = run.totals.expressions, time.perf_counter() - begin
            print(
                f"seed {share.seed}: {told:,} expressions, {written} disagreements, {spent:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    for program in programs:
        program.close()
    run.totals.seen.clear()
    return run.totals
