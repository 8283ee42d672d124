"""Flags of what is simulated, and of its course: those of `koordpolicy simulate` and of comparisons by simulation."""

import argparse

from koordpolicy.model.time import parse_duration
from koordpolicy.simulator.clock import LONGEST

MOST_GENERATED = 1_000_000
"""Nodes, and pods, that are made at most."""

MOST_SEEDS = 1_000
DEFAULT_SEEDS = 3
"""Seeds of a comparison where none are said."""

MOST_SEED = (1 << 32) - 1
MOST_BATCH_PERCENT = 100


def add_workload(parser: argparse.ArgumentParser) -> None:
    """Which nodes and pods."""
    parser.add_argument(
        "--nodes",
        metavar="FILE",
        help="nodes: CSV of Alibaba's openb or GPU serving traces or of its machines with GPUs (`pai_machine_spec`), what `kubectl get -o json|yaml` prints (claims, volumes, budgets, ... too; `.jsonl`: one a line), or a snapshot; each may be compressed (`.gz`, `.bz2`, `.xz`)",
    )
    parser.add_argument(
        "--pods",
        metavar="FILE",
        help="pods, in the same formats, or CSV of the batch tasks of Alibaba's trace of 2017; one that is on a node already is placed anew, and the report counts those",
    )
    parser.add_argument(
        "--sample",
        metavar="SHARE",
        type=_share,
        default=1.0,
        help="with --pods: so much of the pods, drawn by the seed, as `5%%` (default: 100%%)",
    )
    parser.add_argument(
        "--generate",
        metavar="N[:M]",
        type=generated,
        help="instead of files: N nodes and M pods (10 a node) of a day, drawn by the seed from published statistics",
    )
    parser.add_argument(
        "--batch",
        metavar="SHARE",
        type=_share,
        default=0.0,
        help="with --generate: batch jobs beside them, which request so much of all CPUs in the mean, as `40%%` (default: 0%%)",
    )


def add_course(parser: argparse.ArgumentParser, comparing: str, default_seeds: int | None = None) -> None:
    """How it runs; `comparing` is the flag that compares by several seeds, without which their number is None for a command that
    says how many it takes by itself.
    """
    parser.add_argument(
        "--contention",
        metavar="FILE",
        help="parameters of how services suffer from others on their nodes, as in koordpolicy/simulator/contention.yaml, with sources",
    )
    parser.add_argument(
        "--faults",
        metavar="FILE",
        help="what goes wrong, as YAML or JSON: a list `faults` of `nodeLoss: {at: 2h, for: 30m, nodes: {count: 2}}` (or `names`, `matchLabels`),"
        " `metricGap` with the same, `lateAgents` with the same and `by: 30s`, `lateStart: {by: 20m, nodes: {count: 2}}` for agents that begin"
        " late, and `apiErrors: {at: 8h, for: 10m, share: 30%%, code: 500}` (or 409, 429); `koordpolicy schema faults` prints the schema",
    )
    parser.add_argument(
        "--interval",
        metavar="D",
        type=duration,
        help="time between the reports of agents (default: 2m up to two days)",
    )
    parser.add_argument(
        "--until", metavar="D", type=duration, help="how long to simulate (default: all of it)"
    )
    parser.add_argument("--seed", metavar="N", type=seed, default=1, help="seed of all chance (default: 1)")
    parser.add_argument(
        "--seeds",
        metavar="N",
        type=_seeds,
        default=default_seeds,
        help=f"seeds that are compared with {comparing}, from --seed on; more make more differences sure (default: {DEFAULT_SEEDS})",
    )
    parser.add_argument(
        "--agents",
        action="store_true",
        help="run the agents of nodes with pods on models of their kernels: evictions, bursts, the OOM killer too; takes five times as long",
    )


def generated(text: str) -> tuple[int, int | None]:
    """Numbers of nodes and pods, as a flag says them."""
    nodes, colon, pods = text.partition(":")
    try:
        found = int(nodes), int(pods) if colon else None
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a number of nodes, nor two numbers as `100:1000`"
        ) from None
    if not all(one is None or 0 < one <= MOST_GENERATED for one in found):
        raise argparse.ArgumentTypeError(f"`{text}`: numbers lie between 1 and {MOST_GENERATED:,}")
    return found


def _share(text: str) -> float:
    number, percent, rest = text.partition("%")
    in_range = number.replace(".", "", 1).isdecimal() and float(number) <= MOST_BATCH_PERCENT
    if not percent or rest or not in_range:
        meant = f"; write `{text}%`" if in_range and not percent else ""
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a percentage from 0% to {MOST_BATCH_PERCENT}%{meant}"
        )
    return float(number) / 100


def seed(text: str) -> int:
    """A seed, as a flag says it."""
    if not text.isdecimal() or int(text) > MOST_SEED:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number from 0 to {MOST_SEED:,}")
    return int(text)


def _seeds(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_SEEDS:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number from 1 to {MOST_SEEDS}")
    return int(text)


def duration(text: str) -> int:
    """Nanoseconds, more than none, as a flag says them."""
    try:
        length = parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if length <= 0:
        raise argparse.ArgumentTypeError(f"`{text}` is not more than nothing")
    if length > LONGEST:
        raise argparse.ArgumentTypeError(f"`{text}` is more than 80 years")
    return length
