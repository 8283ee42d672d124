"""Which HTTP proxy is on the way to a server, as the environment says it."""

from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies


def proxy_of(server: str) -> str:
    """The proxy that `https_proxy` and the like name for a server's URL; "" where `no_proxy` excepts it, or none is named."""
    named = getproxies()
    proxy = named.get(urlsplit(server).scheme) or named.get("all") or ""
    return "" if excepts(named.get("no", ""), server) else proxy


def excepts(exceptions: str, server: str) -> bool:
    """Whether a list such as `no_proxy` excepts a server's URL: by its name, a domain above it, its address or network."""
    parts = urlsplit(server)
    host = (parts.hostname or "").lower()
    names = (host, parts.netloc.lower())
    for entry in map(str.strip, exceptions.lower().split(",")):
        if entry == "*" or (entry and _is_within(host, entry)):
            return True
        domain = entry.lstrip(".")
        if domain and any(name == domain or name.endswith(f".{domain}") for name in names):
            return True
    return not host


def _is_within(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
