"""Every metric that a process of the project shows: one table, which the manual is made from.

A new metric is a row here. Names say their unit; counters end in `_total`. Labels have few values: nothing that
grows with pods or nodes.
"""

from typing import Final

from koordpolicy.runtime.metrics.koord_scheduler import KOORD_SCHEDULER
from koordpolicy.runtime.metrics.koordlet import KOORDLET
from koordpolicy.runtime.metrics.metric import Metric, MetricKind

_QUICK: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BRIEF: Final = (0.0001, 0.00025, 0.0005, *_QUICK)
_SLOW: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

METRICS: Final = (
    Metric(
        "koordpolicy_build_info",
        MetricKind.GAUGE,
        "Always 1; the labels say which program this is.",
        ("version", "component"),
    ),
    # --- policies: which revision runs, and what became of the others
    Metric(
        "koordpolicy_active_revision_info",
        MetricKind.GAUGE,
        "Always 1; the labels name the revision that decides.",
        ("revision", "digest"),
    ),
    Metric(
        "koordpolicy_rejected_revision_info",
        MetricKind.GAUGE,
        "1 while the newest revision is not the one that decides; the labels say which it is and why.",
        ("revision", "digest", "reason"),
    ),
    Metric(
        "koordpolicy_slo_config_refused",
        MetricKind.GAUGE,
        "1 while a document of the followed slo-controller-config is refused: what it said before holds.",
        ("document",),
    ),
    Metric(
        "koordpolicy_slo_config_changes_total",
        MetricKind.COUNTER,
        "Versions of the followed slo-controller-config, by whether all of them was taken.",
        ("result",),
    ),
    Metric(
        "koordpolicy_reload_detected_total",
        MetricKind.COUNTER,
        "Revisions that a source gave.",
        ("source",),
    ),
    Metric(
        "koordpolicy_reload_skipped_total",
        MetricKind.COUNTER,
        "Revisions never compiled, since a newer one came before their turn.",
    ),
    Metric(
        "koordpolicy_reload_total",
        MetricKind.COUNTER,
        "Attempts to activate a revision, by result (activated, rejected) and reason.",
        ("result", "reason"),
    ),
    Metric(
        "koordpolicy_reload_last_attempt_timestamp_seconds",
        MetricKind.GAUGE,
        "When the newest attempt to activate a revision ended, in seconds since 1970.",
    ),
    Metric(
        "koordpolicy_reload_last_success_timestamp_seconds",
        MetricKind.GAUGE,
        "When a revision was activated last, in seconds since 1970.",
    ),
    Metric(
        "koordpolicy_reload_duration_seconds",
        MetricKind.HISTOGRAM,
        "From the arrival of a revision to its activation or rejection, without waiting for a rollout.",
        buckets=_SLOW,
    ),
    Metric(
        "koordpolicy_source_trouble",
        MetricKind.GAUGE,
        "1 while the source cannot give a revision, by reason.",
        ("reason",),
    ),
    Metric(
        "koordpolicy_policy_rules",
        MetricKind.GAUGE,
        "Rules of the active revision, packs included.",
    ),
    Metric(
        "koordpolicy_policy_documents",
        MetricKind.GAUGE,
        "Policy documents of the active revision, packs included.",
    ),
    # --- a repository that is kept in step
    Metric(
        "koordpolicy_sync_total",
        MetricKind.COUNTER,
        "Attempts to sync with the repository, by outcome (success, noop, error).",
        ("outcome",),
    ),
    Metric(
        "koordpolicy_sync_duration_seconds",
        MetricKind.HISTOGRAM,
        "Time of an attempt to sync with the repository, by outcome.",
        ("outcome",),
        _SLOW,
    ),
    Metric(
        "koordpolicy_sync_last_success_timestamp_seconds",
        MetricKind.GAUGE,
        "When the repository was last found in step, or brought there, in seconds since 1970.",
    ),
    Metric(
        "koordpolicy_sync_revision_info",
        MetricKind.GAUGE,
        "Always 1; the label names the commit that is published.",
        ("commit",),
    ),
    Metric(
        "koordpolicy_sync_trouble",
        MetricKind.GAUGE,
        "1 while the repository cannot be synced, by reason.",
        ("reason",),
    ),
    Metric(
        "koordpolicy_sync_hooks_total",
        MetricKind.COUNTER,
        "Messages of the repository's host, by what they were worth (triggers, ignored, refused).",
        ("worth",),
    ),
    # --- rollouts
    Metric(
        "koordpolicy_rollout_info",
        MetricKind.GAUGE,
        "Always 1; the labels say which revision is rolled out, and where that stands.",
        ("revision", "step", "phase"),
    ),
    Metric(
        "koordpolicy_rollout_compared",
        MetricKind.GAUGE,
        "Decisions of the present step on which this process asked both revisions.",
    ),
    Metric(
        "koordpolicy_rollout_disagreements",
        MetricKind.GAUGE,
        "Those of them on which the revisions gave different answers.",
    ),
    Metric(
        "koordpolicy_rollout_dropped",
        MetricKind.GAUGE,
        "Decisions of this rollout that were to be compared, but came too quickly one after the other.",
    ),
    # --- decisions
    Metric(
        "koordpolicy_decisions_total",
        MetricKind.COUNTER,
        "Decisions asked for, by name and outcome (answered, failed).",
        ("decision", "outcome"),
    ),
    Metric(
        "koordpolicy_revision_decisions_total",
        MetricKind.COUNTER,
        "Decisions answered by each of the last revisions.",
        ("revision",),
    ),
    Metric(
        "koordpolicy_decision_log_total",
        MetricKind.COUNTER,
        "Entries of the decision log: written, or dropped because writing could not keep up.",
        ("result",),
    ),
    # --- the process
    Metric(
        "koordpolicy_ready",
        MetricKind.GAUGE,
        "Whether a condition of readiness holds.",
        ("condition",),
    ),
    Metric(
        "koordpolicy_leader",
        MetricKind.GAUGE,
        "1 on the replica that leads.",
        ("lease",),
    ),
    Metric(
        "koordpolicy_event_loop_delay_seconds",
        MetricKind.HISTOGRAM,
        "How late the event loop ran a timer: the time that something waited for its turn.",
        buckets=_QUICK,
    ),
    Metric(
        "koordpolicy_event_loop_held_total",
        MetricKind.COUNTER,
        "Times that something kept the event loop for seconds; the log names it.",
    ),
    Metric(
        "koordpolicy_http_requests_total",
        MetricKind.COUNTER,
        "Requests to the process's own server, by path and status code.",
        ("path", "code"),
    ),
    Metric(
        "koordpolicy_http_connections_closed_total",
        MetricKind.COUNTER,
        "Connections to the process's own server that it ended, by reason: a request came too slowly, nothing came for"
        " long, what came was no HTTP, others needed the room (slow, idle, malformed, room).",
        ("reason",),
    ),
    Metric(
        "koordpolicy_http_failures_total",
        MetricKind.COUNTER,
        "Requests to the process's own server that failed as nobody foresaw, by path and kind of error; of each kind the"
        " first is in the log.",
        ("path", "error"),
    ),
    # --- the cluster
    Metric(
        "koordpolicy_kube_requests_total",
        MetricKind.COUNTER,
        "Requests to the API server, by verb, resource and status code (0: no answer came).",
        ("verb", "resource", "code"),
    ),
    Metric(
        "koordpolicy_kube_request_duration_seconds",
        MetricKind.HISTOGRAM,
        "Time until the API server answered; for watches, until they began.",
        ("verb",),
        _QUICK,
    ),
    # --- what cannot be read, and what nobody foresaw
    Metric(
        "koordpolicy_unreadable_objects",
        MetricKind.GAUGE,
        "Objects of the cluster that cannot be read now, by resource; the log, `/statusz` and Events say why.",
        ("resource",),
    ),
    Metric(
        "koordpolicy_unreadable_objects_found_total",
        MetricKind.COUNTER,
        "Times that an object could not be read for a reason that is new of it, by resource.",
        ("resource",),
    ),
    Metric(
        "koordpolicy_internal_errors_total",
        MetricKind.COUNTER,
        "Errors that nobody foresaw, by what they took (object, decision, diagnosis, write, extender, revision, metrics); the log has a traceback.",
        ("place",),
    ),
    Metric(
        "koordpolicy_condition_errors_total",
        MetricKind.COUNTER,
        "Evaluations of rules' conditions that failed, so that the rule did not apply; `/statusz` names the conditions.",
    ),
    # --- the scheduler
    Metric(
        "koordpolicy_scheduler_attempts_total",
        MetricKind.COUNTER,
        "Attempts to place a pod, by result (scheduled, unschedulable, passed_on, error, bind_failed).",
        ("result",),
    ),
    Metric(
        "koordpolicy_scheduler_decision_seconds",
        MetricKind.HISTOGRAM,
        "Time of an attempt to place a pod, without what is written.",
        buckets=_BRIEF,
    ),
    Metric(
        "koordpolicy_scheduler_gang_rounds",
        MetricKind.HISTOGRAM,
        "Rounds in a row that a gang was tried in until all it needs had a node.",
        (),
        (1, 2, 3, 5, 10, 20, 50, 100),
    ),
    Metric(
        "koordpolicy_scheduler_pending_pods",
        MetricKind.GAUGE,
        "Pods that wait for a node, by where: due (active), backing off (backoff), until something happens"
        " (unschedulable), for their gates (gated).",
        ("queue",),
    ),
    Metric(
        "koordpolicy_scheduler_advice_evaluations_total",
        MetricKind.COUNTER,
        "How often nodes were evaluated to find out what would help pods that wait.",
    ),
    Metric(
        "koordpolicy_extender_calls_total",
        MetricKind.COUNTER,
        "Calls by kube-scheduler, by verb and result (ok, not_ready, malformed, error).",
        ("verb", "result"),
    ),
    Metric(
        "koordpolicy_extender_duration_seconds",
        MetricKind.HISTOGRAM,
        "Time from a call by kube-scheduler to its answer, by verb.",
        ("verb",),
        _QUICK,
    ),
    # --- the descheduler
    Metric(
        "koordpolicy_descheduler_rounds_total",
        MetricKind.COUNTER,
        "Rounds of the descheduler, by profile and result (done, idle, failed, or dropped, when another revision decided meanwhile).",
        ("profile", "result"),
    ),
    Metric(
        "koordpolicy_descheduler_round_seconds",
        MetricKind.HISTOGRAM,
        "Time in which a round finds which pods go, without their evictions.",
        (),
        _SLOW,
    ),
    Metric(
        "koordpolicy_descheduler_evictions_total",
        MetricKind.COUNTER,
        "Pods that were to go, by strategy and result (evicted, migrating, refused, gone, failed, dry_run).",
        ("strategy", "result"),
    ),
    Metric(
        "koordpolicy_descheduler_migrations",
        MetricKind.GAUGE,
        "PodMigrationJobs that there are, by phase.",
        ("phase",),
    ),
    # --- webhooks
    Metric(
        "koordpolicy_webhook_requests_total",
        MetricKind.COUNTER,
        "Reviews that API servers asked for, by webhook and result (allowed, changed, denied, not_ready, malformed, late,"
        " error).",
        ("webhook", "result"),
    ),
    Metric(
        "koordpolicy_webhook_duration_seconds",
        MetricKind.HISTOGRAM,
        "Time from a review to its answer, by webhook.",
        ("webhook",),
        _BRIEF,
    ),
    Metric(
        "koordpolicy_webhook_certificate_end_timestamp_seconds",
        MetricKind.GAUGE,
        "When the certificate ends that the webhooks are served with, where it is one of our own.",
    ),
    # --- fronts, which serve these under `--http`
    Metric(
        "koordpolicy_front_requests_total",
        MetricKind.COUNTER,
        "Requests that a front has seen answered, by who has answered (manager: the one behind it, at once or once it was back; replica:"
        " another one; front: refused as no request, too large or too many; nobody: none in time) and status code.",
        ("answered_by", "code"),
    ),
    Metric(
        "koordpolicy_front_carried_total",
        MetricKind.COUNTER,
        "Requests of a front that its manager did not answer at once, so that it and other replicas were asked again.",
    ),
    Metric(
        "koordpolicy_front_requests_in_flight",
        MetricKind.GAUGE,
        "Requests that wait for an answer, by where: at the manager behind the front, or elsewhere.",
        ("where",),
    ),
    Metric("koordpolicy_front_connections", MetricKind.GAUGE, "Connections of clients that a front holds."),
    Metric(
        "koordpolicy_front_connections_closed_total",
        MetricKind.COUNTER,
        "Connections that a front ended, by reason: a request came too slowly, nothing came for long, others needed the room"
        " (slow, idle, room).",
        ("reason",),
    ),
    Metric(
        "koordpolicy_admission_violations_total",
        MetricKind.COUNTER,
        "Requests that broke an admission rule, by rule and by what came of it (enforce, warn, audit).",
        ("rule", "enforcement"),
    ),
    # --- work queues of controllers
    Metric(
        "koordpolicy_queue_depth",
        MetricKind.GAUGE,
        "Objects that wait to be reconciled.",
        ("queue",),
    ),
    Metric(
        "koordpolicy_reconcile_total",
        MetricKind.COUNTER,
        "Objects reconciled, by result (written, unchanged, failed).",
        ("queue", "result"),
    ),
    Metric(
        "koordpolicy_reconcile_duration_seconds",
        MetricKind.HISTOGRAM,
        "Time to reconcile one object, requests included.",
        ("queue",),
        _QUICK,
    ),
    # --- YARN beside Kubernetes
    Metric(
        "koordpolicy_yarn_reachable",
        MetricKind.GAUGE,
        "1 while YARN's ResourceManager answers, 0 while it does not: what it offers then stays as it was.",
    ),
    Metric(
        "koordpolicy_yarn_requests_total",
        MetricKind.COUNTER,
        "Requests to YARN's ResourceManager (nodes, update), by the status of the answer (unanswered).",
        ("request", "result"),
    ),
    Metric(
        "koordpolicy_yarn_nodes",
        MetricKind.GAUGE,
        "Nodes that share batch resources with a NodeManager.",
    ),
    Metric(
        "koordpolicy_yarn_resources",
        MetricKind.GAUGE,
        "CPU in cores and memory in bytes of all nodes: what YARN may use (offered), what its containers have (used), what is "
        "kept from pods for it (claimed).",
        ("what", "resource"),
    ),
    Metric(
        "koordpolicy_policy_status_writes_total",
        MetricKind.COUNTER,
        "Writes of the status of policy objects and revisions, by result (written, failed).",
        ("kind", "result"),
    ),
    Metric(
        "koordpolicy_agents",
        MetricKind.GAUGE,
        "Agents of nodes by what they make of the active revision (running, rejected, behind, silent), as the manager that "
        "leads counts them.",
        ("state",),
    ),
    # --- the agent of a node; those of koordlet are for dashboards that know its names
    Metric(
        "koordpolicy_kernel_writes_total",
        MetricKind.COUNTER,
        "Writes of kernel files that strategies wanted, by who writes and by what became of them.",
        ("writer", "outcome"),
    ),
    Metric(
        "koordpolicy_hook_answers_total",
        MetricKind.COUNTER,
        "Questions of container runtimes about pods and containers, by stage and by what became of them.",
        ("stage", "result"),
    ),
    Metric(
        "koordpolicy_file_conflicts_total",
        MetricKind.COUNTER,
        "Kernel files that several strategies wanted otherwise, by who decided (Arbitration).",
        ("file", "winner"),
    ),
    Metric(
        "koordpolicy_evictions_total",
        MetricKind.COUNTER,
        "Pods that the agent evicted, by reason.",
        ("reason",),
    ),
    Metric(
        "koordpolicy_node_reports_total",
        MetricKind.COUNTER,
        "Reports of the node (NodeMetric), by result (written, failed).",
        ("result",),
    ),
    Metric(
        "koordpolicy_node_topologies_total",
        MetricKind.COUNTER,
        "How often the agent wrote the NodeResourceTopology of its node, as it said something else.",
    ),
    Metric(
        "koordpolicy_node_devices_total",
        MetricKind.COUNTER,
        "How often the agent wrote the Device object of its node, as it said something else.",
    ),
    Metric("koordpolicy_agent_pods", MetricKind.GAUGE, "Pods that the agent knows on its node."),
    Metric(
        "koordpolicy_agent_pods_age_seconds",
        MetricKind.GAUGE,
        "How long ago the kubelet or the API server told the agent of its pods.",
    ),
    Metric(
        "koordpolicy_agent_measurements_bytes",
        MetricKind.GAUGE,
        "Memory that the agent's measurements take.",
    ),
    Metric(
        "koordpolicy_agent_peaks",
        MetricKind.GAUGE,
        "Pods and groups of pods whose peaks the agent predicts.",
    ),
    Metric(
        "koordpolicy_node_cold_memory_bytes",
        MetricKind.GAUGE,
        "Memory of the node that nobody has looked at for long, where the kernel looks for it.",
        ("node",),
    ),
    Metric(
        "koordpolicy_pod_cold_memory_bytes",
        MetricKind.GAUGE,
        "The same of a pod.",
        ("node", "pod_namespace", "pod_name"),
    ),
    Metric(
        "koordpolicy_device_healthy",
        MetricKind.GAUGE,
        "Whether a device of the node works, by its type (gpu, rdma), number and ID.",
        ("node", "type", "minor", "id"),
    ),
    Metric(
        "koordpolicy_device_busy_percent",
        MetricKind.GAUGE,
        "Percent of a device's cores in use, as last measured.",
        ("node", "type", "minor", "id"),
    ),
    Metric(
        "koordpolicy_device_used_memory_bytes",
        MetricKind.GAUGE,
        "Memory of a device in use, as last measured.",
        ("node", "type", "minor", "id"),
    ),
    *KOORDLET,
    *KOORD_SCHEDULER,
    Metric(
        "koordpolicy_events_dropped_total",
        MetricKind.COUNTER,
        "Events that were not written, by reason: rate (an object caused too many), queue (too many waited), refused and"
        " unreachable (what the API server answered, or that it did not).",
        ("reason",),
    ),
)
"""All metrics, in the order of the manual. Those of the Python process itself (`process_*`) come on top."""
