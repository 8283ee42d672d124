import json
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.scrubbing import scrubbed, scrubbed_object

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "labels": {"app": "web"},
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": '{"env": "hunter2"}',
            "koordinator.sh/cpuBurst": "{}",
        },
    },
    "spec": {
        "nodeName": "node-1",
        "containers": [
            {
                "name": "main",
                "image": "web:1",
                "command": ["run", "--password=hunter2"],
                "args": ["hunter2"],
                "env": [{"name": "TOKEN", "value": "hunter2"}],
                "envFrom": [{"secretRef": {"name": "hunter2"}}],
                "lifecycle": {"preStop": {"exec": {"command": ["hunter2"]}}},
                "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "A", "value": "hunter2"}]}},
                "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
                "ports": [{"containerPort": 80, "hostPort": 80}],
                "imagePullPolicy": "Always",
                "securityContext": {"privileged": True},
            }
        ],
        "initContainers": [{"name": "init", "image": "init:1", "env": [{"name": "A", "value": "hunter2"}]}],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "key", "secret": {"secretName": "hunter2"}},
            {"name": "host", "hostPath": {"path": "/var", "type": "Directory"}},
            {"name": "ci", "csi": {"driver": "x", "volumeAttributes": {"password": "hunter2"}}},
            {"name": "gce", "gcePersistentDisk": {"pdName": "disk", "fsType": "ext4", "readOnly": True}},
            {"name": "rbd", "rbd": {"monitors": ["m"], "image": "i", "secretRef": {"name": "hunter2"}}},
        ],
        "tolerations": [{"key": "pool", "operator": "Exists"}],
    },
    "status": {"phase": "Running", "qosClass": "Burstable"},
}


def test_secrets_are_dropped_and_what_placement_needs_stays() -> None:
    kept = scrubbed(POD)
    assert "hunter2" not in json.dumps(kept)
    assert kept["metadata"]["annotations"] == {"koordinator.sh/cpuBurst": "{}"}
    [container] = kept["spec"]["containers"]
    assert container == {
        "name": "main",
        "image": "web:1",
        "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
        "ports": [{"containerPort": 80, "hostPort": 80}],
        "imagePullPolicy": "Always",
        "securityContext": {"privileged": True},
    }
    assert kept["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "key", "secret": {}},
        {"name": "host", "hostPath": {"path": "/var"}},
        {"name": "ci", "csi": {}},
        {"name": "gce", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}},
        {"name": "rbd", "rbd": {"image": "i", "monitors": ["m"]}},
    ]
    assert kept["spec"]["tolerations"] == POD["spec"]["tolerations"]
    assert kept["status"] == POD["status"]


def test_templates_are_scrubbed_too() -> None:
    reservation = {"metadata": {"name": "r"}, "spec": {"template": {"spec": POD["spec"]}}}
    assert "hunter2" not in json.dumps(scrubbed(reservation))


def test_the_original_is_not_changed() -> None:
    before = json.dumps(POD)
    scrubbed(POD)
    assert json.dumps(POD) == before


NAMED = {"name": "x", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}}
KEPT_NAME: dict[str, Any] = {"name": "x", "annotations": {}}


@pytest.mark.parametrize(
    ("resource", "obj", "kept"),
    [
        (
            resources.STORAGE_CLASSES,
            {"provisioner": "p", "parameters": {"restuserkey": "hunter2"}, "volumeBindingMode": "Immediate"},
            {"provisioner": "p", "volumeBindingMode": "Immediate"},
        ),
        (
            resources.PERSISTENT_VOLUMES,
            {
                "spec": {
                    "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"key": "hunter2"}},
                    "flexVolume": {"options": {"password": "hunter2"}},
                    "capacity": {"storage": "1Gi"},
                },
                "status": {"phase": "Bound", "message": "hunter2"},
            },
            {
                "spec": {"capacity": {"storage": "1Gi"}, "csi": {"driver": "d", "volumeHandle": "h"}},
                "status": {"phase": "Bound"},
            },
        ),
        (
            resources.REPLICA_SETS,
            {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": "hunter2"}, "status": {}},
            {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
        ),
        (
            resources.VOLUME_ATTACHMENTS,
            {
                "spec": {
                    "nodeName": "n",
                    "source": {"persistentVolumeName": "v", "inlineVolumeSpec": "hunter2"},
                }
            },
            {"spec": {"nodeName": "n", "source": {"persistentVolumeName": "v"}}},
        ),
        (resources.SERVICES, {"spec": None}, {"spec": None}),
    ],
)
def test_of_some_objects_only_what_is_asked_for_stays(
    resource: Resource, obj: dict[str, Any], kept: dict[str, Any]
) -> None:
    found = scrubbed_object(resource, {"metadata": NAMED, **obj})
    assert found == {"metadata": KEPT_NAME, **kept}
