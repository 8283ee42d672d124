"""The process harness: what every long-running process shares, and nothing of what it decides.

    source --revisions--> live --RuleGraph--> component
                            | last good tree on disk, metrics, PolicyRevision, log

`live` keeps the running graph, `process` starts and stops, `http` answers whoever `authentication` lets
ask, `decisions` samples what was decided. Clock, randomness and the environment come in here, and prometheus-client too.
What a policy means is `graph/`'s business, what a component does with an answer is the component's.
"""
