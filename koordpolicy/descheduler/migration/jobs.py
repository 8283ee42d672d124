"""The PodMigrationJobs and Reservations of a cluster, as watches show them and as we have written them ourselves since."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from koordpolicy.descheduler.migration.job import MigrationJob, read_job
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.kube.port import Cluster, MergePatch, Object
from koordpolicy.kube.resources import POD_MIGRATION_JOBS, RESERVATIONS, Resource
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.pod import PodKey
from koordpolicy.model.unreadable import Unreadable, readable


class MigrationJobs:
    """Kept from two watches. `changed` is called whenever something may be to be done; what cannot be read is noted, and not carried out."""

    def __init__(self, cluster: Cluster, unreadable: UnreadableObjects, changed: Callable[[], None]) -> None:
        self._cluster = cluster
        self._unreadable = unreadable
        self._changed = changed
        self._read: dict[str, MigrationJob] = {}
        self._by_pod: dict[PodKey, set[str]] = {}
        self._superseded: dict[str, set[str]] = {}
        """Resource versions of jobs that we have changed since."""
        self.jobs = Mirror(handlers=(self._job_changed,))
        self.reservations = Mirror(handlers=(lambda _change: changed(),))
        self.mirrors: Final[dict[Resource, Mirror]] = {
            POD_MIGRATION_JOBS: self.jobs,
            RESERVATIONS: self.reservations,
        }

    def every(self) -> Sequence[MigrationJob]:
        """All jobs that can be read."""
        return tuple(self._read.values())

    def of_pod(self, pod: PodKey) -> Sequence[MigrationJob]:
        """The jobs that are about a pod of this name."""
        return [self._read[name] for name in sorted(self._by_pod.get(pod, ()))]

    async def create(self, job: Object) -> MigrationJob:
        """A new job. Raises KubeError."""
        made = read_job(await self._cluster.create(POD_MIGRATION_JOBS, job))
        if made.name not in self._read:
            self._put(made)
        return made

    async def patch(self, job: MigrationJob, body: dict[str, Any], *, status: bool = False) -> MigrationJob:
        """A job as it is after a change. Raises KubeError, Conflict where it is another one by now."""
        body = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": job.resource_version}}
        found = await self._cluster.patch(
            POD_MIGRATION_JOBS, job.name, MergePatch(body), subresource="status" if status else ""
        )
        changed = read_job(found)
        if changed.resource_version != job.resource_version:
            self._superseded.setdefault(job.name, set()).add(job.resource_version)
            self._put(changed)
        return changed

    def _job_changed(self, change: ObjectChange) -> None:
        name = change.key[1]
        if change.new is None:
            self._drop(name)
            self._superseded.pop(name, None)
            self._unreadable.gone(POD_MIGRATION_JOBS, change.key)
            self._changed()
            return
        found = readable(read_job, change.new)
        if isinstance(found, Unreadable):
            self._drop(name)
            self._unreadable.found(POD_MIGRATION_JOBS, change.key, change.new, found)
            return
        self._unreadable.gone(POD_MIGRATION_JOBS, change.key)
        known = self._read.get(name)
        superseded = self._superseded.get(name, set())
        if known is not None and known.uid == found.uid and found.resource_version in superseded:
            return  # what we have written since is newer
        self._superseded.pop(name, None)
        self._put(found)
        self._changed()

    def _put(self, job: MigrationJob) -> None:
        self._drop(job.name)
        self._read[job.name] = job
        self._by_pod.setdefault(job.pod, set()).add(job.name)

    def _drop(self, name: str) -> None:
        known = self._read.pop(name, None)
        if known is not None:
            names = self._by_pod[known.pod]
            names.discard(name)
            if not names:
                del self._by_pod[known.pod]
