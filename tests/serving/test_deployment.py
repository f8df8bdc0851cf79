"""The image, the systemd unit and the Kubernetes example of the page about serving fit the service as it is."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import DOCS, REPOSITORY

from neardup_gpu.cli.app import app
from neardup_gpu.cli.options import given
from neardup_gpu.serving.settings import TOKEN, Serving

PAGE = (DOCS / "how_to" / "serve.md").read_text()
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()


def fenced(language: str) -> str:
    """The one block of a language on the page."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found


def parsed(words: list[str]) -> tuple[str, Serving]:
    """The index and the settings that a command line of the service names."""
    command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    assert command.__name__ == "serve"
    return bound.args[0], Serving(**given(bound.kwargs.get("serving")))


def of_stage(name: str) -> str:
    [found] = re.findall(rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM |\Z)", DOCKERFILE, re.MULTILINE | re.DOTALL)
    return found


def test_the_image_serves_and_its_health_check_asks_the_service() -> None:
    stage = of_stage("serve")
    [words] = re.findall(r"^CMD (\[.*\])$", stage, re.MULTILINE)
    index, serving = parsed(yaml.safe_load(words))
    assert index == "/data/index" and serving.host == "0.0.0.0"
    [check] = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", stage, re.MULTILINE)
    assert f"http://127.0.0.1:{serving.port}/health" in yaml.safe_load(check)[-1]
    assert f"EXPOSE {serving.port}" in stage and "USER 1000" in of_stage("cpu") and "USER" not in stage
    assert "serve" in re.findall(r"\[([\w,]+)\]' ';'", of_stage("cpu"))[0].split(",")


def test_the_systemd_unit(tmp_path: Path) -> None:
    unit: Any = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str
    unit.read_string(fenced("ini"))
    service = unit["Service"]
    program, *words = shlex.split(service["ExecStart"])
    index, serving = parsed(words)
    assert Path(program).name == "neardup" and serving.host == "127.0.0.1"
    assert index.startswith(f"/var/lib/{service['StateDirectory']}/")
    assert service["Environment"] == f"NEARDUP_CACHE_DIR=/var/cache/{service['CacheDirectory']}"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    path = tmp_path / "neardup.service"
    path.write_text(fenced("ini").replace(program, shutil.which("true") or "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True)
    assert "neardup.service" not in done.stderr, done.stderr


def test_the_kubernetes_example() -> None:
    deployment, service, claim = yaml.safe_load_all(fenced("yaml"))
    assert [each["kind"] for each in (deployment, service, claim)] == ["Deployment", "Service", "PersistentVolumeClaim"]
    spec, pod = deployment["spec"], deployment["spec"]["template"]["spec"]
    assert spec["replicas"] == 1 and spec["strategy"]["type"] == "Recreate"
    labels = spec["template"]["metadata"]["labels"]
    assert labels == spec["selector"]["matchLabels"] == service["spec"]["selector"]
    [container] = pod["containers"]
    index, serving = parsed(container["args"])
    [port] = container["ports"]
    assert serving.host == "0.0.0.0" and port["containerPort"] == serving.port
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": port["name"]}
    assert container["env"][0]["name"] == TOKEN
    [mount], [volume] = container["volumeMounts"], pod["volumes"]
    assert index.startswith(f"{mount['mountPath']}/") and mount["name"] == volume["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert pod["securityContext"]["runAsNonRoot"] and f"--uid {pod['securityContext']['runAsUser']} " in DOCKERFILE
    assert f"-t {container['image']} ." in fenced("console")
