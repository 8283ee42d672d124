"""Why an expression cannot be said to an API server."""


class NotNative(Exception):
    """An expression has no certain equal in an API server's CEL. The text completes "because ...", for people."""
