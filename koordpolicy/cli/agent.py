"""`koordpolicy agent`: measures a node, reports it, and keeps its kernel as policies say."""

import argparse
from dataclasses import replace
from pathlib import Path

from koordpolicy.agent.collectors.devices import DeviceSources
from koordpolicy.agent.doctor import doctor_record, doctor_text
from koordpolicy.agent.hooks.places import HookPlaces
from koordpolicy.agent.pods import PodSource
from koordpolicy.agent.process import NAME, AgentSettings, node_kernel, run_agent
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.process import run_component, settings_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.kube.api.service_account import SERVICE_ACCOUNT
from koordpolicy.kube.kubelet import KubeletAccess
from koordpolicy.linux.root import CGROUPS, KUBELET, PROC, RESCTRL, SYS
from koordpolicy.model.quantity import amount
from koordpolicy.runtime.component import Settings
from koordpolicy.runtime.process import CannotStart, Process


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Work until told to stop, or look once."""
    agent = _agent(arguments, terminal)
    if arguments.doctor:
        return _doctor(agent, terminal)
    if not agent.node:
        raise CannotRunError("--node says which node this is; a DaemonSet sets NODE_NAME for it")
    if sum(map(bool, _sources(arguments))) > 1:
        raise CannotRunError("policies come from one place: choose one of the --policies flags")
    settings = replace(settings_of(arguments), node=agent.node)
    if agent.once:
        settings = replace(settings, http=None)  # beside an agent that runs, its address is taken

    async def main(process: Process, settings: Settings) -> None:
        await run_agent(process, settings, agent)

    return run_component(arguments, NAME, settings, main)


def _sources(arguments: argparse.Namespace) -> tuple[object, ...]:
    return (
        arguments.policies,
        arguments.policies_from_cluster,
        arguments.policies_repo,
        arguments.policies_from_manager,
        arguments.policies_from_node_slo,
    )


def _agent(arguments: argparse.Namespace, terminal: Terminal) -> AgentSettings:
    try:
        size = amount("memory", arguments.audit_size)
    except ValueError:
        size = 0
    if size < 1:
        raise CannotRunError(
            f"--audit-size takes a quantity from 1, such as 16Mi; not `{arguments.audit_size}`"
        )
    return AgentSettings(
        node=arguments.node,
        pods_from=PodSource(arguments.pods_from) if arguments.kubelet_url else PodSource.API_SERVER,
        kubelet=_kubelet(arguments),
        from_manager=arguments.policies_from_manager,
        from_node_slo=arguments.policies_from_node_slo,
        trees=trees_of(arguments),
        parent=arguments.kubelet_cgroup_root,
        terway=arguments.terway_dir,
        devices=DeviceSources(arguments.device_infos, arguments.nvml),
        hooks=_hooks(arguments),
        nri=None if arguments.dry_run or arguments.once else arguments.nri_socket,
        dry_run=arguments.dry_run or arguments.once,
        once=arguments.once,
        audit_file=arguments.audit_log,
        audit_bytes=size,
        json=arguments.output == "json",
        shown=terminal.print,
    )


def _hooks(arguments: argparse.Namespace) -> HookPlaces | None:
    if arguments.hook_socket is None:
        if arguments.hook_socket_on_node is not None:
            raise CannotRunError(
                "--hook-socket-on-node says where --hook-socket is on the node; set that, too"
            )
        return None
    if arguments.dry_run or arguments.once:
        return None
    return HookPlaces(arguments.hook_socket, arguments.hook_dir, arguments.hook_socket_on_node)


def trees_of(arguments: argparse.Namespace) -> dict[str, Path]:
    """Where the node's trees are mounted here, as the flags say."""
    trees: dict[str, Path] = {}
    if arguments.root is not None:
        for tree in (PROC, SYS, CGROUPS, RESCTRL, KUBELET):
            trees[tree] = arguments.root / tree.lstrip("/")
    if arguments.cgroup_root is not None:
        trees[CGROUPS] = arguments.cgroup_root
    if arguments.kubelet_dir is not None:
        trees[KUBELET] = arguments.kubelet_dir
    for tree, place in trees.items():
        if tree not in (RESCTRL, KUBELET) and not place.is_dir():
            raise CannotRunError(f"{place} is no directory: it should be the node's {tree}")
    return trees


def _kubelet(arguments: argparse.Namespace) -> KubeletAccess | None:
    url = arguments.kubelet_url.rstrip("/")
    if not url:
        return None
    if not url.startswith(("https://", "http://")):
        raise CannotRunError(f"--kubelet-url takes a URL such as https://127.0.0.1:10250, not `{url}`")
    token = arguments.kubelet_token_file
    if token is None and (SERVICE_ACCOUNT / "token").is_file() and url.startswith("https://"):
        token = SERVICE_ACCOUNT / "token"
    return KubeletAccess(
        url, token, arguments.kubelet_ca_file, arguments.kubelet_insecure_tls, arguments.kubelet_server_name
    )


def _doctor(agent: AgentSettings, terminal: Terminal) -> int:
    try:
        kernel = node_kernel(agent)
    except CannotStart as error:
        raise CannotRunError(str(error)) from None
    terminal.print(
        json_text(doctor_record(kernel, agent.terway), indent=2)
        if agent.json
        else doctor_text(kernel, agent.terway, terminal.width)
    )
    return OK
