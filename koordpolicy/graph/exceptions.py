"""What is to be said of a bundle's PolicyExceptions at a moment: those in force, ending soon, and over."""

from collections.abc import Iterable
from typing import Final

from koordpolicy.diagnostics import Diagnostics, Severity
from koordpolicy.graph.state import Unit
from koordpolicy.graph.terms import BadTermsError, Terms, terms_of
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.cel.values_time import NANOS
from koordpolicy.language.kinds.bundle import ExceptionOptions, PolicyBundleSpec
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec

_DAY: Final = 86_400 * NANOS


def exceptions_of(units: Iterable[Unit]) -> tuple[tuple[Unit, Terms], ...]:
    """The exceptions of all layers by their ends; those with impossible dates have been reported and are left out."""
    found = []
    for unit in units:
        if isinstance(unit.spec, PolicyExceptionSpec):
            try:
                found.append((unit, unit_terms(unit, unit.spec)))
            except BadTermsError:
                continue
    return tuple(sorted(found, key=lambda pair: (pair[1].ends.ns, pair[1].document)))


def unit_terms(unit: Unit, spec: PolicyExceptionSpec) -> Terms:
    """The terms of one document. Raises `BadTermsError`."""
    return terms_of(spec, unit.id, unit.layer_name, unit.document.positions.value(("spec", "expires")))


def judge_exceptions(units: Iterable[Unit], moment: Timestamp) -> Diagnostics:
    """Exceptions of the highest layer that are over (KP701) and that end soon (KP702), as of a moment.

    How soon, the bundle says (`exceptions.warnDays`).
    """
    everything = tuple(units)
    own = max((unit.layer for unit in everything), default=0)
    mine = [unit for unit in everything if unit.layer == own]
    found = Diagnostics()
    soon = _warn_days(mine) * _DAY
    for unit, terms in exceptions_of(mine):
        name = unit.document.name
        left = terms.ends.ns - moment.ns
        if left <= 0:
            found.add(
                "KP701",
                terms.span,
                f"the exception `{name}` of {terms.owner} has been over for {spoken_days(-left)}",
                help="remove it: it changes nothing any more; or, if it is still needed, ask its owner for a new end",
            )
        elif left <= soon and terms.holds(moment):
            found.add(
                "KP702",
                terms.span,
                f"the exception `{name}` of {terms.owner} ends in {spoken_days(left)}",
                help="after that the ordinary policies decide again; see that they fit by then",
                severity=Severity.WARNING,
            )
    return found


def _warn_days(units: Iterable[Unit]) -> int:
    said = [unit.spec.exceptions for unit in units if isinstance(unit.spec, PolicyBundleSpec)]
    return next((options.warn_days for options in said if options is not None), ExceptionOptions().warn_days)


def spoken_days(nanoseconds: int) -> str:
    """A time that is not negative, in days, or in hours below two of them."""
    hours = nanoseconds // (3600 * NANOS)
    if hours < 1:
        return "less than an hour"
    number, unit = (hours, "hour") if hours < 48 else (hours // 24, "day")
    return f"{number:,} {unit}{'' if number == 1 else 's'}"
