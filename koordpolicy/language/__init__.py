"""The policy language: documents with positions, kinds, facts, decisions, and CEL.

It knows text and meaning, but neither Kubernetes clients nor evaluation of a whole bundle: that is
`graph/`. YAML is read and written only here.
"""
