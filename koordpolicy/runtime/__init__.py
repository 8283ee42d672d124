"""The process harness: what every long-running process shares, and nothing of what it decides.

    source --revisions--> policies.live --RuleGraph--> component
                            | asks rollout.gate, which yields stages
                            | last good tree on disk, metrics, reports, log

`policies.live` keeps the running graph, `process` starts and stops, `http` answers whoever `http.authentication` lets
ask, `reports` says in the cluster what runs, `decisions` samples what was decided. Clock, randomness and the
environment come in here, and prometheus-client too. What a policy means is `graph/`'s business, what a component does
with an answer is the component's.
"""
