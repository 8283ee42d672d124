"""Whole documents: what stands around the `spec` of every kind."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field, create_model

from koordpolicy.language.kinds.base import Spec
from koordpolicy.language.kinds.fields import DNSName, LabelKey, LabelValue, PolicyModel, Text
from koordpolicy.language.kinds.table import API_VERSION, KINDS, Kind

_ANNOTATION = Annotated[str, Text("a text", most=262_144)]


class Metadata(PolicyModel):
    """Name and notes of a document."""

    name: DNSName
    """Name of the document, unique among those of its kind in a bundle."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels, for people and tools."""
    annotations: dict[LabelKey, _ANNOTATION] = Field(default_factory=dict)
    """Annotations, for people and tools; `koordpolicy.io/description` says what the document is for."""


class PolicyDocument(PolicyModel):
    """A policy document; `DOCUMENTS` has one model a kind, whose class body nobody wrote."""

    metadata: Metadata = Field(description="Name and notes of the document.")
    spec: Spec = Field(description="What the document says.")


def _document_model(kind: Kind) -> type[PolicyDocument]:
    fields: dict[str, Any] = {
        "api_version": (
            Annotated[str, Text("the `apiVersion` of a policy", choices=(API_VERSION,), code="KP102")],
            Field(description="Version of the policy language."),
        ),
        "kind": (
            Annotated[str, Text("the kind", choices=(kind.name,), code="KP103")],
            Field(description=kind.summary),
        ),
        "metadata": (Metadata, Field(description="Name and notes of the document.")),
        "spec": (kind.spec, Field(description="What the document says.")),
    }
    return create_model(kind.name, __base__=PolicyDocument, __doc__=kind.summary, **fields)


DOCUMENTS: Mapping[str, type[PolicyDocument]] = MappingProxyType(
    {name: _document_model(kind) for name, kind in KINDS.items()}
)
"""The model of whole documents by kind."""
