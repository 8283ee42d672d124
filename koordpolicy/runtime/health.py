"""What every process tells of itself over HTTP: alive, ready, metrics, status."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy import __version__
from koordpolicy.diagnostics.escaping import json_text, safe
from koordpolicy.diagnostics.render import render
from koordpolicy.model.time import NANOSECONDS, time_text
from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.http import JSON, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.metrics import CONTENT_TYPE
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.runtime.process import Process

_SHOWN: Final = 20


def health_routes(process: Process, live: LivePolicies | None = None) -> tuple[Route, ...]:
    """`/healthz`, `/readyz`, `/metrics` and `/statusz` (JSON with `?format=json` or by `Accept`)."""

    async def healthy(_: Request) -> Response:
        return Response.text("ok\n")

    async def ready(_: Request) -> Response:
        missing = process.readiness.missing
        if not missing:
            return Response.text("ok\n")
        return Response.text("".join(f"{name}: {why}\n" for name, why in missing.items()), 503)

    async def metrics(_: Request) -> Response:
        return Response(200, process.metrics.text(), CONTENT_TYPE)

    async def status(request: Request) -> Response:
        told = status_of(process, live)
        wanted = request.query.get("format", "")
        if wanted == "json" or (not wanted and "json" in request.headers.get("accept", "")):
            text = json_text(told, indent=2, default=str)
            return Response(200, text.encode() + b"\n", JSON)
        return Response.text(safe(status_text(told, live)))

    return (
        Route("GET", "/healthz", healthy, Protection.OPEN),
        Route("GET", "/readyz", ready, Protection.OPEN),
        Route("GET", "/metrics", metrics, Protection.READ),
        Route("GET", "/statusz", status, Protection.READ),
    )


def status_of(process: Process, live: LivePolicies | None = None) -> dict[str, Any]:
    """The status as JSON values. Times are seconds since 1970."""
    told: dict[str, Any] = {
        "component": process.component,
        "instance": process.instance,
        "version": __version__,
        "uptimeSeconds": round(monotonic() - process.started, 1),
        "ready": not process.readiness.missing,
        "waitingFor": process.readiness.missing,
    }
    if live is not None:
        told["policies"] = _policies(live)
    told.update(process.status.told())
    return told


def _policies(live: LivePolicies) -> dict[str, Any]:
    active, rejected, candidate, trouble = live.active, live.rejected, live.candidate, live.trouble
    return {
        "origin": live.origin,
        "active": active
        and {
            "bundle": active.bundle,
            "revision": active.revision.name,
            "digest": active.revision.digest,
            "graph": active.graph.digest,
            "since": active.since / 1e9,
            "reason": str(active.reason),
            "files": len(active.revision.files),
            "documents": len(active.graph.units),
            "warnings": len(active.found),
        },
        "candidate": candidate and {"revision": candidate.revision.name, "digest": candidate.revision.digest},
        "rejected": rejected
        and {
            "revision": rejected.revision.name,
            "digest": rejected.revision.digest,
            "reason": str(rejected.reason),
            "message": rejected.message,
            "at": rejected.at / 1e9,
            "errors": len(rejected.errors),
            "findings": [
                {
                    "code": one.code,
                    "severity": one.severity.value,
                    "file": one.span.file,
                    "line": one.span.start.line,
                    "column": one.span.start.column,
                    "message": one.message,
                    "help": one.help,
                }
                for one in rejected.errors[:_SHOWN]
            ],
        },
        "trouble": trouble and {"reason": trouble.reason, "message": trouble.message},
        "skipped": live.skipped,
        "history": [past.shown() for past in reversed(live.history)],
    }


def status_text(told: Mapping[str, Any], live: LivePolicies | None) -> str:
    """The status for people."""
    ready = "ready" if told["ready"] else "not ready"
    up = _span(told["uptimeSeconds"])
    lines = [f"koordpolicy {told['component']} {told['version']} on {told['instance']}: {ready}, up {up}"]
    lines += [f"  waits for {name}: {why}" for name, why in told["waitingFor"].items()]
    policies = told.get("policies")
    if policies is not None and live is not None:
        lines += ["", *_policies_text(policies, live)]
    known = {"component", "instance", "version", "uptimeSeconds", "ready", "waitingFor", "policies"}
    rest = {key: value for key, value in told.items() if key not in known}
    if rest:
        lines += ["", *(f"{key}: {_plain(value)}" for key, value in rest.items())]
    return "\n".join(lines) + "\n"


def _policies_text(policies: Mapping[str, Any], live: LivePolicies) -> list[str]:
    active, trouble = policies["active"], policies["trouble"]
    lines = [f"policies from {policies['origin']}"]
    if active:
        lines.append(f"  active    {active['revision']} since {_time(active['since'])} ({active['reason']})")
    else:
        lines.append("  active    none")
    if policies["candidate"]:
        lines.append(f"  candidate {policies['candidate']['revision']}")
    if trouble:
        lines.append(f"  trouble   {trouble['message']}")
    if policies["rejected"]:
        rejected = policies["rejected"]
        lines.append(f"  rejected  {rejected['revision']} ({rejected['reason']}): {rejected['message']}")
        bad = live.rejected
        if bad is not None and bad.errors:
            lines += ["", render("text", bad.errors, bad.sources, width=100, limit=_SHOWN)]
    lines += ["", "history"]
    for past in policies["history"]:
        words = f"{past['result']} ({past['reason']})" + (f": {past['message']}" if past["message"] else "")
        lines.append(f"  {_time(past['at'])} {past['revision'][:23]} {words}")
    return lines


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value, default=str)


def _time(seconds: float) -> str:
    return time_text(int(seconds) * NANOSECONDS)


def _span(seconds: float) -> str:
    whole = int(seconds)
    parts = ((whole // 86_400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    shown = [f"{number}{unit}" for number, unit in parts if number]
    return " ".join(shown[:2]) or "0s"
