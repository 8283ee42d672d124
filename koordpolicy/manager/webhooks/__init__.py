"""What happens to objects on their way into the cluster: profiles draw pods into co-location, rules refuse them.

`hooks` is the table of webhooks. Their handlers are functions of a request and of objects that are known already, without
I/O, and so stand in front of the in-memory cluster and behind the HTTPS server alike.
"""
