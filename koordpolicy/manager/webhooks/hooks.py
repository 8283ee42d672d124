"""The table of webhooks: each stands in front of the in-memory cluster and behind the HTTPS server alike.

To add one: a function of an `AdmissionRequest` in a file of this folder, and a line below.
"""

from typing import Final

from koordpolicy.kube.admission import AdmissionChain, Operation
from koordpolicy.kube.resources import NAMESPACES, PODS, PRIORITY_CLASSES
from koordpolicy.manager.webhooks.pods import PodMutation, PodValidation
from koordpolicy.manager.webhooks.scope import mutated_pods, validated_pods
from koordpolicy.manager.webhooks.webhook import Phase, Webhook, WebhookContext

_CREATE, _UPDATE, _DELETE = Operation.CREATE, Operation.UPDATE, Operation.DELETE

WEBHOOKS: Final = (
    Webhook(
        "mutate-pod",
        Phase.MUTATING,
        (PODS,),
        (_CREATE,),
        lambda context: PodMutation(context).answer,
        reads=(NAMESPACES, PRIORITY_CLASSES),
        scope=mutated_pods,
    ),
    Webhook(
        "validate-pod",
        Phase.VALIDATING,
        (PODS,),
        (_CREATE, _UPDATE),
        lambda context: PodValidation(context).answer,
        reads=(NAMESPACES,),
        scope=validated_pods,
    ),
)
"""All webhooks; those of one phase are asked in this order."""


def chain(context: WebhookContext) -> AdmissionChain:
    """All of them as admission hooks, for a cluster without others."""
    hooks = {phase: [one.hook(context) for one in WEBHOOKS if one.phase is phase] for phase in Phase}
    return AdmissionChain(tuple(hooks[Phase.MUTATING]), tuple(hooks[Phase.VALIDATING]))
