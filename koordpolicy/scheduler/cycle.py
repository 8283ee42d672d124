"""A scheduling cycle: one pod, asked of a profile. `evaluation` is its first half, `select_host` the second."""

from dataclasses import dataclass

from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import Records
from koordpolicy.cluster.state import ClusterState
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.reading import ObjectError
from koordpolicy.scheduler.plugins import ParameterError
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.step import Step


class CycleProblem(Exception):
    """The cycle itself failed: no answer is to be had about any node.

    `step` is the filter or score that failed (`filter:NAME`), empty where that is not known; `cause` is an error that
    nobody foresaw, None for one of policy, of a parameter or of an object; `of_object` says that it is an object that cannot
    be read, the pod or one that it names, which is no fault of policy.
    """

    def __init__(
        self, text: str, step: str = "", cause: Exception | None = None, *, of_object: bool = False
    ) -> None:
        super().__init__(text)
        self.step = step
        self.cause = cause
        self.of_object = of_object

    @classmethod
    def of(cls, problem: Exception, step: Step | None = None) -> "CycleProblem":
        """Whatever was raised, over a step if one was being asked."""
        if isinstance(problem, CycleProblem):
            return problem
        known = isinstance(problem, CelError | ParameterError | ObjectError)
        return cls(
            str(problem),
            "" if step is None else step.place,
            None if known else problem,
            of_object=isinstance(problem, ObjectError),
        )


@dataclass(frozen=True, slots=True)
class Cycle:
    """A pod, asked of a profile. `view` is the pod, `records` the facts that expressions read, by root, those of nodes excepted.

    `state` is what there is beside nodes; without it, plugins that look beyond nodes are not asked.
    """

    profile: Profile
    view: PodView
    records: Records
    state: ClusterState | None = None
