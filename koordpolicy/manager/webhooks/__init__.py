"""What happens to pods on their way into the cluster: profiles draw them into co-location, rules refuse them.

`mutation` and `rules` are pure and hold for the in-memory cluster and an HTTPS server alike; `hooks` makes
admission hooks of them.
"""
