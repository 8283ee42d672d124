"""Admission policies and their bindings as objects, with all that an API server would fill in, so that what is there can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

API_VERSION: Final = "admissionregistration.k8s.io/v1"
OWNED: Final = {"app.kubernetes.io/managed-by": "koordpolicy"}
"""Labels of objects that may be changed and deleted."""


class PolicyKind(StrEnum):
    """Whether an admission policy refuses objects or changes them."""

    VALIDATING = "ValidatingAdmissionPolicy"
    MUTATING = "MutatingAdmissionPolicy"


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy, by the name of what it comes from; `actions` are those of its binding.

    `parameter` is the object of the kind that its `paramKind` names, without which nothing is admitted; empty for none.
    """

    kind: PolicyKind
    name: str
    spec: Mapping[str, Any]
    actions: tuple[str, ...]
    annotations: Mapping[str, str]
    parameter: str = ""

    @property
    def object_name(self) -> str:
        """The name of the object and of its binding."""
        return f"{self.name}.koordpolicy.io"

    def object(self) -> dict[str, Any]:
        """The policy."""
        return self._object(self.kind, self.spec)

    def binding(self) -> dict[str, Any]:
        """What puts it in force for the whole cluster."""
        spec: dict[str, Any] = {"policyName": self.object_name}
        if self.parameter:
            spec["paramRef"] = {"name": self.parameter, "parameterNotFoundAction": "Deny"}
        if self.actions:
            spec["validationActions"] = list(self.actions)
        return self._object(f"{self.kind}Binding", spec)

    def _object(self, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": API_VERSION,
            "kind": str(kind),
            "metadata": {
                "name": self.object_name,
                "labels": dict(OWNED),
                "annotations": dict(self.annotations),
            },
            "spec": dict(spec),
        }
