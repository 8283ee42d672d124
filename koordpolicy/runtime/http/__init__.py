"""HTTP as a component serves it: routes with what they let their callers do, within limits and deadlines."""

from koordpolicy.runtime.http.routing import JSON, Request, Response, Route
from koordpolicy.runtime.http.server import HttpServer

__all__ = ["JSON", "HttpServer", "Request", "Response", "Route"]
