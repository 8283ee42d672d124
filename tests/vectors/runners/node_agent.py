"""Runners of the node agent."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.mechanism.container_resources import (
    quota_of,
    quota_text,
    shares_of,
    shares_of_weight,
    weight_of_shares,
)
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]


def shares_weight(given: Given) -> Given:
    try:
        if "weight" in given:
            return {"shares": shares_of_weight(given["weight"])}
        return {"weight": weight_of_shares(given["shares"])}
    except ValueError:
        return {"error": True}


def cpu_files(given: Given) -> Given:
    shares, quota = shares_of(given["request"]), quota_of(given["limit"])
    return {
        "v1": {"cpu.shares": shares, "cpu.cfs_quota_us": quota},
        "v2": {"cpu.weight": weight_of_shares(shares), "cpu.max": quota_text(quota)},
    }


RUNNERS: Mapping[str, Runner] = {
    "shares_weight": Runner(shares_weight),
    "cpu_files": Runner(cpu_files),
}
