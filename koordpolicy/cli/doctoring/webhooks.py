"""The manager's webhooks: configured, trusted for long enough, and reached by the API server."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.cli.counted import counted
from koordpolicy.cli.doctoring.check import CheckOutcome, ClusterCheck, Examination
from koordpolicy.cli.doctoring.processes import leads
from koordpolicy.cli.rollouts.text import span
from koordpolicy.kube import resources
from koordpolicy.kube.errors import Forbidden, KubeError, NotFound
from koordpolicy.kube.port import Object
from koordpolicy.manager.webhooks.certificates import SECRET
from koordpolicy.model.protocol import KOORDPOLICY_API
from koordpolicy.runtime.http.issuing import split, validity

_NAME: Final = "koordpolicy"
_RULES: Final = next(one for one in resources.POLICIES if one.kind == "AdmissionRule")
_UNREACHED: Final = "failed calling webhook"
_ANSWERED: Final = "admission webhook"
_RULE: Final[Mapping[str, Any]] = {
    "apiVersion": KOORDPOLICY_API,
    "kind": "AdmissionRule",
    "metadata": {"name": "koordpolicy-doctor"},
    "spec": {"message": "never stored", "require": {"cel": "this_name_is_unknown"}},
}
"""A policy that the API server's schema takes, and that does not compile: only the webhook refuses it."""
_POD: Final[Mapping[str, Any]] = {
    "metadata": {"name": "koordpolicy-doctor", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "none"}]},
}


async def webhooks(examination: Examination) -> Iterable[ClusterCheck]:
    """Configurations, certificates, and a policy that must be refused, tried without being stored."""
    found: list[ClusterCheck] = []
    entries: list[Mapping[str, Any]] = []
    for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
        try:
            configuration = await examination.cluster.get(resource, _NAME)
        except NotFound:
            found.append(
                ClusterCheck(
                    "webhooks",
                    CheckOutcome.ABSENT,
                    f"there is no {resource.kind} `{_NAME}`: the API server asks no manager",
                    "apply deploy/manager, or set `webhooks.enabled` of the chart",
                )
            )
            continue
        entries += configuration.get("webhooks") or ()
    if not entries:
        if not found:
            found.append(
                ClusterCheck(
                    "webhooks",
                    CheckOutcome.WARNING,
                    f"the configurations name no webhook: {', or '.join(await _reasons(examination))}",
                    "give managers `--webhook :9876`, as deploy/manager and the chart do",
                )
            )
        return found
    found += _configured(entries)
    found += _authorities(entries, examination.now())
    found += await _secret(examination)
    found += await _reached(examination, entries)
    return found


async def _reasons(examination: Examination) -> Iterator[str]:
    """Why nobody may have written any into them."""
    try:
        led = await leads(examination, "manager")
    except KubeError:
        led = False
    ours = (
        "the manager that leads serves none (it runs without `--webhook`)",
        "no policy speaks of any object",
    )
    return iter(ours if led else ("no manager leads", *ours))


def _configured(entries: Sequence[Mapping[str, Any]]) -> Iterator[ClusterCheck]:
    open_ones = sorted(str(one.get("name")) for one in entries if one.get("failurePolicy") == "Ignore")
    said = f"{counted(len(entries), 'webhook')} configured"
    if open_ones:
        said += f"; without a manager these are passed over: {', '.join(open_ones)}"
    yield ClusterCheck("webhooks", CheckOutcome.GOOD, said)


def _authorities(entries: Sequence[Mapping[str, Any]], now: int) -> Iterator[ClusterCheck]:
    """The bundles by which the API server believes the manager."""
    bundles = {str((one.get("clientConfig") or {}).get("caBundle") or "") for one in entries}
    if "" in bundles:
        yield ClusterCheck(
            "webhooks",
            CheckOutcome.WARNING,
            "a webhook has no caBundle: the API server believes the system's authorities alone",
            "the manager that leads fills it in, cert-manager where it injects",
        )
    for bundle in sorted(bundles - {""}):
        yield from _valid("authority of the webhooks", bundle, now)


async def _secret(examination: Examination) -> list[ClusterCheck]:
    """The pair that is served, where the manager makes it."""
    try:
        secret = await examination.cluster.get(resources.SECRETS, SECRET, namespace=examination.namespace)
    except NotFound:
        return []  # certificates are given
    except Forbidden:
        return [
            ClusterCheck(
                "certificate",
                CheckOutcome.UNKNOWN,
                f"you may not read Secret `{SECRET}` in `{examination.namespace}`",
                "the alert KoordpolicyCertificateExpires tells as well",
            )
        ]
    return list(_served(secret, examination.now()))


def _served(secret: Object, now: int) -> Iterator[ClusterCheck]:
    data = secret.get("data") or {}
    certificate = data.get("tls.crt")
    if certificate is None:
        yield ClusterCheck(
            "certificate",
            CheckOutcome.FAILED,
            f"Secret `{SECRET}` has no `tls.crt`",
            "delete it: a manager makes it anew",
        )
    else:
        yield from _valid("certificate", str(certificate), now)


def _valid(subject: str, encoded: str, now: int) -> Iterator[ClusterCheck]:
    """Whether any of a bundle's certificates holds now, and for how long."""
    try:
        found = [validity(one) for one in split(base64.b64decode(encoded, validate=True))]
    except (binascii.Error, ValueError) as error:
        yield ClusterCheck(subject, CheckOutcome.FAILED, f"it cannot be read: {error}")
        return
    good = [one for one in found if one.since <= now < one.until]
    if not good:
        yield ClusterCheck(
            subject,
            CheckOutcome.FAILED,
            "it is over" if all(one.until <= now for one in found) else "it does not hold yet",
            "a manager that leads renews its own; look at its log, or at cert-manager",
        )
        return
    until = max(one.until for one in good)
    yield ClusterCheck(subject, CheckOutcome.GOOD, f"holds for {span(until - now)}")


async def _reached(examination: Examination, entries: Sequence[Mapping[str, Any]]) -> list[ClusterCheck]:
    """Whether the server reaches the manager: something that it is asked about is tried, and never stored."""
    if any(
        "koordpolicy.io" in (rule.get("apiGroups") or ())
        for one in entries
        for rule in one.get("rules") or ()
    ):
        resource, probe, refused = _RULES, _RULE, True
    else:
        resource, probe, refused = resources.PODS, _POD, False
    try:
        await examination.cluster.create(resource, probe, dry_run=True)
    except KubeError as error:
        if _UNREACHED in error.message:
            return [
                ClusterCheck(
                    "webhooks",
                    CheckOutcome.FAILED,
                    f"the API server does not reach them: {error.message}",
                    "look at the Service, its endpoints, and network policies between API server and manager",
                )
            ]
        if _ANSWERED in error.message:
            return [ClusterCheck("webhooks", CheckOutcome.GOOD, "the API server reaches them: one answered")]
        return [ClusterCheck("webhooks", CheckOutcome.UNKNOWN, f"whether they are reached: {error.message}")]
    if refused:
        return [
            ClusterCheck(
                "webhooks",
                CheckOutcome.FAILED,
                "a policy that does not compile was let in (and not stored): the webhook of policies is not reached, and passed over",
                "look at the manager's log and at the Service behind the webhooks",
            )
        ]
    return [
        ClusterCheck(
            "webhooks",
            CheckOutcome.GOOD,
            "the API server lets a plain pod in: it reaches them, or need not ask",
        )
    ]
