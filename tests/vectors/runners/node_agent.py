"""Runners of the node agent."""

from collections.abc import Mapping

from tests.vectors.runners.runner import Runner

RUNNERS: Mapping[str, Runner] = {}
