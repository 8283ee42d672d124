"""All that API servers decide by themselves of a revision: rules and profiles, each with its policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from koordpolicy.graph import RuleGraph
from koordpolicy.manager.native.policies import Policy, PolicyKind
from koordpolicy.manager.native.profiles import native_profiles
from koordpolicy.manager.native.rules import Staying, native_rules
from koordpolicy.manager.webhooks.cluster_profiles import ClusterProfile
from koordpolicy.manager.webhooks.profiles import KIND as PROFILE
from koordpolicy.manager.webhooks.rules import KIND as RULE
from koordpolicy.manager.webhooks.scope import ANNOUNCEMENT, Expression


@dataclass(frozen=True, slots=True)
class NativeAdmission:
    """Policies by the targets (`AdmissionRule/NAME`) that they come from, the targets that stay with webhooks, and the idle ones.

    An idle one does nothing to anybody, so that nobody has to be asked about it.
    """

    policies: Mapping[str, Policy]
    staying: tuple[Staying, ...] = ()
    idle: frozenset[str] = frozenset()

    def without_mutations(self) -> "NativeAdmission":
        """It on API servers that know no MutatingAdmissionPolicies."""
        kept = {
            target: policy for target, policy in self.policies.items() if policy.kind is PolicyKind.VALIDATING
        }
        return NativeAdmission(kept, self.staying, self.idle)


NOTHING_NATIVE = NativeAdmission({})


def native_admission(
    graph: RuleGraph, spared: Sequence[Expression], objects: Sequence[ClusterProfile] = ()
) -> NativeAdmission:
    """See `native_rules` and `native_profiles`."""
    rules, profiles = native_rules(graph, spared), native_profiles(graph, spared, objects)
    policies = {f"{RULE}/{name}": policy for name, policy in rules.policies.items()}
    policies |= {f"{PROFILE}/{name}": policy for name, policy in profiles.policies.items()}
    if profiles.announcer is not None:
        policies[ANNOUNCEMENT] = profiles.announcer
    idle = {*(f"{RULE}/{name}" for name in rules.idle), *(f"{PROFILE}/{name}" for name in profiles.idle)}
    return NativeAdmission(policies, (*rules.staying, *profiles.staying), frozenset(idle))
