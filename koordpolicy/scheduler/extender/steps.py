"""Which filters and scores of a profile an extender asks: not those that kube-scheduler asks itself.

`own` are those that kube-scheduler has no twin of: expressions of policy, and Koordinator's plugins. `all`
are all of them, for a kube-scheduler whose own plugins are switched off. Else they are named.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from koordpolicy.scheduler.plugins.gang.elsewhere import GANGS_IN_EXTENDER
from koordpolicy.scheduler.profile import Profile, ProfileError
from koordpolicy.scheduler.step import Step

OWN: Final = "own"
ALL: Final = "all"


def restricted_to(steps: str) -> Callable[[Profile], Profile]:
    """Makes profiles of some steps alone: `own`, `all`, or names separated by commas.

    What it gives raises ProfileError for a profile that has no step of such a name.
    """
    if steps == ALL:
        return lambda profile: profile
    names = None if steps == OWN else frozenset(name for name in steps.split(",") if name)
    return lambda profile: _restricted(profile, names)


def _restricted(profile: Profile, names: frozenset[str] | None) -> Profile:
    filters, scores = _left(profile.filters, names), _left(profile.scores, names)
    unknown = (names or frozenset()) - {step.name for step in (*filters, *scores)}
    if unknown:
        raise ProfileError(
            f"the profile `{profile.name}` has no filter or score {', '.join(f'`{one}`' for one in sorted(unknown))}"
        )
    places = {f"filter:{step.name}" for step in filters} | {f"score:{step.name}" for step in scores}
    return replace(
        profile,
        filters=filters,
        scores=scores,
        beyond=tuple(one for one in profile.beyond if one[0] in places),
        evaluate=profile.evaluate if any(step.expression for step in (*filters, *scores)) else None,
    )


def _left(steps: Sequence[Step], names: frozenset[str] | None) -> tuple[Step, ...]:
    kept = [step for step in steps if (not _is_twin(step) if names is None else step.name in names)]
    # The extender says of pods of gangs that nobody keeps them together, whatever else it is asked.
    gangs = [step for step in steps if step.plugin is not None and step.plugin.jobs is not None]
    return tuple(
        step if step not in gangs else replace(step, plugin=GANGS_IN_EXTENDER)
        for step in steps
        if step in kept or step in gangs
    )


def _is_twin(step: Step) -> bool:
    """Whether kube-scheduler asks this one itself. With an expression of policy beside it, it is another one."""
    return not step.expression and step.plugin is not None and step.plugin.of_kubernetes
