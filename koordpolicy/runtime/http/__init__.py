"""HTTP as a component serves it: routes with what they let their callers do, within limits and deadlines."""

from koordpolicy.runtime.http.server import JSON, HttpServer, Request, Response, Route

__all__ = ["JSON", "HttpServer", "Request", "Response", "Route"]
