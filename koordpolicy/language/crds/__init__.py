"""CustomResourceDefinitions of the policy kinds and of PolicyRevision, made from the models.

Every kind can stand in a cluster, PolicyBundle and PolicyTest too: what Argo CD or Flux apply is a folder, and a
server that does not know one of its kinds refuses the whole of it. The schemas catch what the API server
can tell (unknown keys, wrong shapes); the rest is `koordpolicy check`'s, and the compiler's in the cluster. They
default and prune nothing, so that what is applied is what stands there.
"""

from koordpolicy.language.crds.definitions import crd_files, definitions, write_crds

__all__ = ["crd_files", "definitions", "write_crds"]
