"""kube-scheduler's extender: the same answers as the scheduler's own, over HTTP.

`server` takes calls, `wire` reads and writes them, `turns` has them wait for news, `extender` answers, `steps` says which filters
and scores kube-scheduler has itself.
"""
