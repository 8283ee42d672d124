"""All objects of a resource at one moment, for those who look once and do not watch."""

from typing import Final

from koordpolicy.kube.errors import Gone
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import Resource

_PAGE: Final = 500
_ATTEMPTS: Final = 2
"""How often pages may outlive the server's history before all is asked for at once."""


async def every_object(cluster: Cluster, resource: Resource, *, label_selector: str = "") -> list[Object]:
    """All objects of a resource, in all namespaces, page by page.

    Begun anew, and at last asked for in one, where the server forgets the moment that the first page shows. Raises
    KubeError.
    """
    for _ in range(_ATTEMPTS):
        try:
            return await _pages(cluster, resource, label_selector)
        except Gone:
            continue
    return list((await cluster.list(resource, label_selector=label_selector)).items)


async def _pages(cluster: Cluster, resource: Resource, label_selector: str) -> list[Object]:
    found: list[Object] = []
    token = ""
    while True:
        page = await cluster.list(resource, label_selector=label_selector, limit=_PAGE, continue_token=token)
        found += page.items
        token = page.continue_token
        if not token:
            return found
