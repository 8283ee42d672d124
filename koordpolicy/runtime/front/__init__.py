"""A small process before a webhook server: it holds clients' TLS connections, and asks elsewhere when the server dies.

API servers send a review once. Whoever dies with it loses it, so what holds their connections does nothing else: no
policies, no objects, no library that could fail. The server behind it, on a Unix socket, may be killed at any moment.
"""
