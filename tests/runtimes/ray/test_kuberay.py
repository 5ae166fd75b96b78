"""The manifest for Kubernetes uses settings of this project, and its resources suffice for what it requests."""

from __future__ import annotations

import copy
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from placement.config import TrainConfig, build
from placement.runtimes.public import store_defaults

ROOT = Path(__file__).resolve().parents[3]
CRD = "PLACEMENT_KUBERAY_CRD"
MEMORY_LEFT = 0.7  # share of a pod's memory that Ray gives to tasks; the rest is for its object store


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docs" / "how-to" / "kuberay.yaml").read_text())


@pytest.fixture(scope="module")
def config(manifest: dict[str, Any]) -> TrainConfig:
    _, script, *overrides = shlex.split(manifest["spec"]["entrypoint"])
    assert Path(script).name == "train.py"
    store_defaults()
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        return build(TrainConfig, OmegaConf.to_container(compose("config", overrides), resolve=True))  # type: ignore[arg-type]


def test_the_command_is_understood(config: TrainConfig) -> None:
    assert config.runtime.name == "ray" and config.runtime.address == "auto" and config.runtime.bind == "node"


def test_token_authentication_is_on(manifest: dict[str, Any]) -> None:
    assert manifest["spec"]["rayClusterSpec"]["authOptions"]["mode"] == "token"


@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_kubernetes_takes_the_pods(manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    cluster = manifest["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, **group["template"]}
        kubernetes_validate.validate(pod, version, strict=True)
        pod["spec"]["containers"][0]["imagePullPolicies"] = "Always"
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(pod, version, strict=True)
        del pod["spec"]["containers"][0]["imagePullPolicies"]


def _closed(schema: Any) -> Any:
    """Returns a CRD's schema as JSON schema in which, as in strict server validation, unknown fields are errors."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    open_ends = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if isinstance(schema.get("properties"), dict) and not open_ends:
        closed["additionalProperties"] = False
    if schema.get("nullable") is True:
        closed["type"] = [schema["type"], "null"]
    return closed


def _job_schema(crd: dict[str, Any], version: str) -> dict[str, Any]:
    """Returns the schema of a RayJob's `spec`, which a RayCronJob has as `jobTemplate`."""
    [found] = [one for one in crd["spec"]["versions"] if one["name"] == version]
    spec = found["schema"]["openAPIV3Schema"]["properties"]["spec"]
    kind = crd["spec"]["names"]["kind"]
    assert kind in ("RayJob", "RayCronJob"), f"{CRD} is of {kind}, not of RayJob"
    return _closed(spec if kind == "RayJob" else spec["properties"]["jobTemplate"])


@pytest.mark.skipif(CRD not in os.environ, reason=f"{CRD} names no file: KubeRay's ray.io_rayjobs.yaml")
def test_kuberay_takes_the_manifest(manifest: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    group, version = manifest["apiVersion"].split("/")
    crd = yaml.safe_load(Path(os.environ[CRD]).read_text())
    assert crd["spec"]["group"] == group
    schema = _job_schema(crd, version)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(manifest["spec"], schema, cls=jsonschema.Draft202012Validator)
    for path, wrong in (
        (("backofLimit",), 3),
        (("backoffLimit",), "3"),
        (("rayClusterSpec", "authOptions", "mode"), "tokens"),
        (("rayClusterSpec", "workerGroupSpecs", 0, "rayStartParams"), {"num-cpus": 0}),
        (("rayClusterSpec", "workerGroupSpecs", 0, "minReplica"), 1),
    ):
        broken = copy.deepcopy(manifest["spec"])
        *above, last = path
        inside: Any = broken
        for name in above:
            inside = inside[name]
        inside[last] = wrong
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema, cls=jsonschema.Draft202012Validator)


def _pins(name: str) -> dict[str, str]:
    """Returns the version of each package in a lock file."""
    lines = (ROOT / name).read_text().splitlines()
    words = [line.split()[0] for line in lines if line[:1].strip() and not line.startswith("#")]
    return {re.sub(r"\[.*\]$", "", package): version for package, version in (word.split("==") for word in words)}


def test_the_image_has_what_jobs_need_at_the_pinned_versions() -> None:
    assert "-r requirements-kuberay.lock" in (ROOT / "Dockerfile").read_text()
    pinned, jobs = _pins("requirements.lock"), _pins("requirements-kuberay.lock")
    assert {"aiohttp", "aiohttp-cors", "opencensus", "virtualenv"} <= jobs.keys(), "the dashboard's"
    assert pinned["ray"] == jobs["ray"]
    assert {name: jobs[name] for name in pinned.keys() & jobs.keys()} == {
        name: pinned[name] for name in pinned.keys() & jobs.keys()
    }


def test_every_process_fits(manifest: dict[str, Any], config: TrainConfig) -> None:
    cpus, memory = {}, {}
    for group in manifest["spec"]["rayClusterSpec"]["workerGroupSpecs"]:
        limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
        cpus[group["groupName"]] = int(limits["cpu"]) * group["replicas"]
        memory[group["groupName"]] = int(limits["memory"].removesuffix("Gi")) * 1024 * group["replicas"] * MEMORY_LEFT
    runtime, roles = config.runtime, config.runtime.roles
    counts = ((roles.actor, runtime.actors), (roles.shard, runtime.shards), (roles.cache, runtime.caches))
    assert roles.learner.cpus <= cpus["learner"]
    assert sum(role.cpus * count for role, count in counts) + roles.evaluator.cpus <= cpus["actors"]
    assert sum(role.memory_mb * count for role, count in counts) + roles.evaluator.memory_mb <= memory["actors"]
