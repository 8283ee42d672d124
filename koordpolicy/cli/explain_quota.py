"""`koordpolicy explain quota`: what a quota may use and why, resource by resource, on a cluster or a picture of one."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from koordpolicy.algorithms.quota_lending import QuotaLending, lending_below
from koordpolicy.algorithms.quota_level import ResourceSplit
from koordpolicy.algorithms.quota_sums import QuotaAccount
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.picture import picture_of
from koordpolicy.cli.pod_policies import Policies, policies_of
from koordpolicy.cli.simulation.words import DIM, Page
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cluster.event_handlers import replay
from koordpolicy.cluster.quota_of_pod import KIND, quota_record
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.model.protocol import CPU, ROOT_QUOTA
from koordpolicy.model.quantity import Notation, Quantity
from koordpolicy.model.quota import Quota
from koordpolicy.model.reading import Amounts
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE, Scheduler
from koordpolicy.scheduler.watched import WATCHED

_ASKED: Final = (
    "sharing.min",
    "sharing.max",
    "sharing.weight",
    "sharing.lends",
    "sharing.scales",
    "scheduling.limit",
)
"""The decisions behind what a quota may use."""

_SIBLINGS: Final = 12
"""Quotas that are shown at one parent at most: the one on the way, and those that have most."""


@dataclass(frozen=True, slots=True)
class _Level:
    """One resource at one parent on the way down: how it is shared, who lends to whom, and which quota there is on the way."""

    parent: str
    resource: str
    split: ResourceSplit
    lending: QuotaLending
    on_the_way: str


@dataclass(frozen=True, slots=True)
class ExplainedQuota:
    """A quota with its sums, what its pods may have, how that comes about, and the rules behind it, by decision."""

    account: QuotaAccount
    tree: str
    limit: Amounts
    by_runtime: bool
    levels: tuple[_Level, ...]
    rules: Mapping[str, str]
    policies: Policies
    waiting: int


def explain_quota(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Say what the quota of the arguments may use, and why. Raises `CannotRunError`."""
    if arguments.policies and arguments.policies_from_cluster:
        raise CannotRunError("policies come from `-p` or from the cluster: give one of the two")
    cluster, heard = picture_of(arguments, terminal)
    policies = policies_of(arguments, heard)
    found = quota_of_picture(policies, cluster, str(arguments.name).rpartition("/")[2], terminal)
    if arguments.output == "json":
        terminal.print(json_text(plain_quota(found), indent=2))
    else:
        terminal.print("\n".join(_lines(found, Page(terminal.width, terminal.colour()))))
    return OK


# --- the question ---------------------------------------------------------------------------------


def quota_of_picture(policies: Policies, cluster: Snapshot, name: str, terminal: Terminal) -> ExplainedQuota:
    """What a quota of a picture may use, and why. Raises `CannotRunError`."""
    scheduler = Scheduler(policies.graph, lambda: cluster.taken, profile=DEFAULT_PROFILE)
    for resource, obj, why in replay(cluster.of, scheduler, WATCHED):
        metadata = obj["metadata"]
        terminal.say(f"{resource} {metadata.get('name')} is unreadable: {why.reason}")
    quotas = scheduler.cache.state.quotas
    if name not in quotas:
        known = ", ".join(sorted(kept.quota.name for kept in quotas)) or "none"
        raise CannotRunError(f"no quota `{name}` is kept; there is {known}")
    kept, sums = quotas[name], quotas.sums(name)
    account = sums.get(name)
    assert account is not None
    way = [one.terms.name for one in sums.path(name) or ()]
    below = dict(zip([ROOT_QUOTA, *way], way, strict=False))
    levels = tuple(
        _Level(parent, resource, found, lending_below(sums, parent, resource, found), below[parent])
        for parent, resource, found in sums.splits(name)
    )
    waiting = sum(not one.placed for one in quotas.pods_of(name).values())
    rules = dict(_rules(policies.graph, kept.quota))
    return ExplainedQuota(
        account, kept.tree, quotas.limit(name), kept.by_runtime, levels, rules, policies, waiting
    )


def _rules(graph: RuleGraph, quota: Quota) -> Iterator[tuple[str, str]]:
    """Where policy says what was asked of a quota."""
    for field in _ASKED:
        answer = graph.ask(f"{KIND}.{field}", quota=quota_record(quota.name, quota))
        for rule in answer.provenance.rules[:1]:
            file = PurePath(rule.span.file)
            shown = f"{rule.layer}/{file.name}" if file.is_absolute() else rule.span.file
            yield field, f"{shown}:{rule.span.start.line}:{rule.span.start.column}"


# --- the answer -----------------------------------------------------------------------------------


def plain_quota(found: ExplainedQuota) -> dict[str, Any]:
    """As JSON values."""
    account = found.account
    return {
        "quota": account.terms.name,
        "tree": found.tree,
        "limit": dict(found.limit),
        "by": "Runtime" if found.by_runtime else "Max",
        "used": dict(account.used),
        "request": dict(account.request),
        "min": dict(account.terms.min),
        "max": dict(account.terms.max),
        "waiting": found.waiting,
        "levels": [_plain_level(level) for level in found.levels],
        "rules": dict(found.rules),
        "policies": found.policies.plain(),
    }


def _plain_level(level: _Level) -> dict[str, Any]:
    split = level.split
    return {
        "parent": level.parent,
        "resource": level.resource,
        "total": split.total,
        "shares": [
            {
                "quota": one.name,
                "request": one.request,
                "floor": one.floor,
                "weight": one.weight,
                "lends": one.lends,
                "first": one.first,
                "runtime": split.split.runtime[one.name],
            }
            for one in split.shares
        ],
        "rounds": [
            {"left": one.left, "weight": one.weight, "handed": dict(one.handed)} for one in split.split.rounds
        ],
        "lending": plain_lending(level.lending),
    }


def plain_lending(found: QuotaLending) -> dict[str, Any]:
    """As JSON values: each loan, and by quota what it uses above its floor of nobody's, or of more than there is."""
    return {
        "loans": [
            {"lender": one.lender, "borrower": one.borrower, "amount": one.amount} for one in found.loans
        ],
        "free": dict(found.free),
        "beyond": dict(found.beyond),
    }


def _lines(found: ExplainedQuota, page: Page) -> Iterator[str]:
    account, policies = found.account, found.policies
    name = account.terms.name
    if not found.limit:
        may = "has no limit"
    else:
        may = "may use " + ", ".join(f"{_shown(key, number)} {key}" for key, number in found.limit.items())
    yield page.heading(f"{name} {may}", f"tree {found.tree}" if found.tree else "")
    yield from page.wrapped(policies.told, 4, "  ")
    yield from page.wrapped(policies.note, 4)
    yield ""
    rows: list[tuple[str, ...]] = [("resource", "used", "requested", "min", "max", "may use")]
    terms = account.terms
    for key in {**terms.max, **terms.min, **account.request}:
        amounts = (account.used, account.request, terms.min, terms.max, found.limit)
        rows.append((key, *(_shown(key, one[key]) if key in one else "-" for one in amounts)))
    yield from _table(rows, page)
    if found.waiting:
        yield ""
        yield f"  {found.waiting} of its pods {'waits' if found.waiting == 1 else 'wait'} for a node."
    if not found.by_runtime:
        yield ""
        yield from page.wrapped("Its pods may have its max, whatever others use.", 2)
    for level in found.levels:
        if level.resource in account.terms.max and found.by_runtime:
            yield ""
            yield from _level_lines(level, page)
    yield ""
    for field, place in found.rules.items():
        yield page.paint(f"  {KIND}.{field}".ljust(32), DIM) + place


def _level_lines(level: _Level, page: Page) -> Iterator[str]:
    """The arithmetic of one resource at one parent."""
    split, key = level.split, level.resource
    total = split.total or 0
    first = sum(one.first for one in split.shares)
    quotas = "1 quota" if len(split.shares) == 1 else f"{len(split.shares)} quotas"
    yield page.heading(f"  {key}: {level.parent} has {_shown(key, total)} for {quotas}")
    shown = sorted(
        split.shares, key=lambda one: (one.name != level.on_the_way, -split.split.runtime[one.name], one.name)
    )[:_SIBLINGS]
    rows: list[tuple[str, ...]] = [
        ("quota", "min", "asks for", "first", "weight", *map(_round, range(len(split.split.rounds))), "has")
    ]
    for one in shown:
        handed = [
            _shown(key, rnd.handed[one.name]) if one.name in rnd.handed else "" for rnd in split.split.rounds
        ]
        rows.append(
            (
                f"{'→ ' if one.name == level.on_the_way else ''}{one.name}",
                _shown(key, one.floor),
                _shown(key, one.request),
                _shown(key, one.first) + ("" if one.hungry or one.lends else ", kept"),
                _shown(key, one.weight) if one.hungry else "-",
                *(f"+{text}" if text else "" for text in handed),
                _shown(key, split.split.runtime[one.name]),
            )
        )
    yield from _table(rows, page, "    ")
    if len(split.shares) > len(shown):
        yield f"    and {len(split.shares) - len(shown)} more"
    scaled = sum(one.floor for one in split.shares)
    if split.total is not None and any(one.floor < split.mins.get(one.name, 0) for one in split.shares):
        yield from page.wrapped(f"mins are scaled to {_shown(key, scaled)} together.", 4)
    yield from page.wrapped(_words(split, key, total, first), 4)
    for text in _lending_words(level):
        yield from page.wrapped(text, 4)


def _lending_words(level: _Level) -> Iterator[str]:
    """From whom the quota on the way has what it uses above its floor, and who uses what it leaves."""
    key, name, found = level.resource, level.on_the_way, level.lending
    parts = [f"{_shown(key, one.amount)} of {one.lender}" for one in found.loans if one.borrower == name]
    if free := found.free.get(name):
        parts.append(f"{_shown(key, free)} that nobody is guaranteed")
    if beyond := found.beyond.get(name):
        parts.append(f"{_shown(key, beyond)} more than it may have by now")
    if parts:
        yield f"{name} uses more than it is guaranteed: {', '.join(parts)}."
    lent = [f"{_shown(key, one.amount)} to {one.borrower}" for one in found.loans if one.lender == name]
    if lent:
        yield f"{name} lends {', '.join(lent)}."


def _words(split: ResourceSplit, key: str, total: int, first: int) -> str:
    """What was done, round by round."""
    words = [f"first {_shown(key, first)} of {_shown(key, total)}"]
    for at, one in enumerate(split.split.rounds):
        words.append(
            f"{_round(at)}: {_shown(key, one.left)} by weight of {_shown(key, one.weight)} among {len(one.handed)}"
        )
    left = total - sum(split.split.runtime.values())
    if left > 0:
        words.append(f"{_shown(key, left)} is left, which nobody asks for")
    elif left < 0:
        words.append(f"{_shown(key, -left)} more than there is: what is guaranteed is not taken back")
    return "; ".join(words) + "."


def _round(at: int) -> str:
    return f"round {at + 1}"


def _table(rows: list[tuple[str, ...]], page: Page, indent: str = "  ") -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        line = indent + "  ".join(cells)
        yield line.rstrip() if number else page.paint(line.rstrip(), DIM)


def _shown(resource: str, number: int) -> str:
    return str(Quantity.of_milli(number) if resource == CPU else Quantity.of(number, Notation.BINARY))
