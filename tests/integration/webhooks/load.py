"""Creations of pods by many clients at once, while something happens to those who admit them."""

import http.client
import json
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.integration.webhooks.site import pod
from tests.parts.apiserver import Access

_PATH = "/api/v1/namespaces/default/pods?dryRun=All"


@dataclass
class Load:
    """Creations that are tried and not kept (`dryRun`), each admitted like any other. `failed` are statuses and words."""

    access: Access
    labels: dict[str, str]
    admitted: int = 0
    unchanged: int = 0
    failed: list[tuple[int, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, count: int, clients: int, *, until: threading.Event | None = None) -> None:
        """Create `count` pods by so many clients; with `until`, go on beyond that until it is set."""
        shares = [count // clients + (one < count % clients) for one in range(clients)]
        with ThreadPoolExecutor(clients) as pool:
            for done in [pool.submit(self._client, share, until) for share in shares]:
                done.result()

    @property
    def count(self) -> int:
        return self.admitted + len(self.failed)

    def _client(self, count: int, until: threading.Event | None) -> None:
        context = ssl.create_default_context(cafile=str(self.access.authority))
        connection = http.client.HTTPSConnection("127.0.0.1", self.access.port, timeout=60, context=context)
        headers = {
            "Authorization": f"Bearer {self.access.token('admin')}",
            "Content-Type": "application/json",
        }
        made = pod("", self.labels)
        made["metadata"] = {"generateName": "load-", "labels": self.labels}
        body = json.dumps(made)
        done = 0
        while done < count or (until is not None and not until.is_set()):
            connection.request("POST", _PATH, body, headers)
            answer = connection.getresponse()
            self._note(answer.status, json.loads(answer.read()))
            done += 1
        connection.close()

    def _note(self, status: int, told: dict[str, Any]) -> None:
        with self._lock:
            if status != 201:
                self.failed.append((status, str(told.get("message"))))
                return
            self.admitted += 1
            if told["metadata"]["labels"].get("drawn") != "in":
                self.unchanged += 1
