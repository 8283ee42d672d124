"""The table of webhooks: each stands in front of the in-memory cluster and behind the HTTPS server alike.

To add one: a function of an `AdmissionRequest` in a file of this folder, and a line below.
"""

from typing import Final

from koordpolicy.kube.admission import AdmissionChain, Operation
from koordpolicy.kube.resources import (
    CLUSTER_COLOCATION_PROFILES,
    CONFIG_MAPS,
    ELASTIC_QUOTA_PROFILES,
    ELASTIC_QUOTAS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESERVATIONS,
)
from koordpolicy.manager.webhooks.bindings import BindingValidation, bound_pods
from koordpolicy.manager.webhooks.cluster_profiles import cluster_profiles
from koordpolicy.manager.webhooks.elastic_quotas import QuotaMutation, QuotaValidation
from koordpolicy.manager.webhooks.node_rules import NodeValidation, checked_nodes, validated_nodes
from koordpolicy.manager.webhooks.nodes import NodeAmplification, amplified_nodes
from koordpolicy.manager.webhooks.pod_quotas import PodQuotaAdmission, counted_pods
from koordpolicy.manager.webhooks.pods import PodMutation, PodValidation
from koordpolicy.manager.webhooks.policies import PolicyValidation
from koordpolicy.manager.webhooks.reservations import ReservationMutation, mutated_reservations
from koordpolicy.manager.webhooks.scope import Scope, mutated_pods, validated_pods
from koordpolicy.manager.webhooks.slo_config import ConfigValidation, labelled_config
from koordpolicy.manager.webhooks.webhook import Phase, Webhook, WebhookContext
from koordpolicy.runtime.policies.objects import KNOWN

_CREATE, _UPDATE, _DELETE = Operation.CREATE, Operation.UPDATE, Operation.DELETE

WEBHOOKS: Final = (
    Webhook(
        "mutate-pod",
        Phase.MUTATING,
        (PODS,),
        (_CREATE,),
        lambda context: PodMutation(context).answer,
        reads=(
            NAMESPACES,
            PRIORITY_CLASSES,
            CLUSTER_COLOCATION_PROFILES,
            ELASTIC_QUOTAS,
            ELASTIC_QUOTA_PROFILES,
        ),
        scope=mutated_pods,
        scope_here=lambda context, graph, native: mutated_pods(
            graph, cluster_profiles(context).requirements(graph), native
        ),
    ),
    Webhook(
        "mutate-reservation",
        Phase.MUTATING,
        (RESERVATIONS,),
        (_CREATE,),
        lambda context: ReservationMutation(context).answer,
        reads=(PRIORITY_CLASSES,),
        scope=mutated_reservations,
    ),
    Webhook(
        "validate-pod",
        Phase.VALIDATING,
        (PODS,),
        (_CREATE, _UPDATE, _DELETE),
        lambda context: PodValidation(context).answer,
        subresources=("", "resize", "ephemeralcontainers"),
        reads=(NAMESPACES, ELASTIC_QUOTAS),
        scope=validated_pods,
        scope_beside=validated_pods,
    ),
    Webhook(
        "admit-pod-to-quota",
        Phase.VALIDATING,
        (PODS,),
        (_CREATE, _UPDATE),
        lambda context: PodQuotaAdmission(context).answer,
        reads=(NAMESPACES, ELASTIC_QUOTAS),
        scope=counted_pods,
        serves=lambda context: context.quota_writes is not None,
    ),
    Webhook(
        "validate-slo-config",
        Phase.VALIDATING,
        (CONFIG_MAPS,),
        (_CREATE, _UPDATE),
        lambda context: ConfigValidation(context).answer,
        reads=(NODES,),
        scope=labelled_config,
    ),
    Webhook(
        "validate-pod-binding",
        Phase.VALIDATING,
        (PODS,),
        (_CREATE,),
        lambda context: BindingValidation(context).answer,
        subresources=("binding",),
        reads=(NAMESPACES, PODS),
        fail_open=True,  # nobody else may place pods either while we are away
        scope=bound_pods,
    ),
    Webhook(
        "mutate-elastic-quota",
        Phase.MUTATING,
        (ELASTIC_QUOTAS,),
        (_CREATE,),
        lambda context: QuotaMutation(context).answer,
        reads=(ELASTIC_QUOTAS,),
    ),
    Webhook(
        "validate-elastic-quota",
        Phase.VALIDATING,
        (ELASTIC_QUOTAS,),
        (_CREATE, _UPDATE, _DELETE),
        lambda context: QuotaValidation(context).answer,
        reads=(ELASTIC_QUOTAS, PODS),
    ),
    Webhook(
        "mutate-node-status",
        Phase.MUTATING,
        (NODES,),
        (_UPDATE,),
        lambda context: NodeAmplification(context).answer,
        subresources=("status",),
        fail_open=True,  # a kubelet that cannot report is a node that is lost
        scope=amplified_nodes,
    ),
    Webhook(
        "validate-node",
        Phase.VALIDATING,
        (NODES,),
        (_CREATE, _UPDATE, _DELETE),
        lambda context: NodeValidation(context).answer,
        fail_open=True,  # a machine that cannot join is worse than what it says of itself
        scope=validated_nodes,
        scope_here=lambda context, graph, _: checked_nodes(context, graph),
    ),
    Webhook(
        "validate-policy",
        Phase.VALIDATING,
        KNOWN,
        (_CREATE, _UPDATE),
        lambda context: PolicyValidation(context).answer,
        fail_open=True,  # a bad revision changes nothing, and policies must be mendable while we are away
        scope=lambda graph: Scope(timeout=30),
        serves=lambda context: context.policy_objects is not None,
    ),
)
"""All webhooks; those of one phase are asked in this order."""


def chain(context: WebhookContext) -> AdmissionChain:
    """All of them as admission hooks, for a cluster without others."""
    served = [one for one in WEBHOOKS if one.serves(context)]
    hooks = {phase: [one.hook(context) for one in served if one.phase is phase] for phase in Phase}
    return AdmissionChain(tuple(hooks[Phase.MUTATING]), tuple(hooks[Phase.VALIDATING]))
