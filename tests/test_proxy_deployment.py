"""What is shipped to run the proxy: the files say what the proxy and its page say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from glmsse.__main__ import build_parser
from glmsse.cli.proxy import settings_from
from glmsse.proxy.app import CHAT_PATHS, MESSAGES_PATHS

ROOT = Path(__file__).resolve().parents[1]
DEFAULTS = settings_from(build_parser().parse_args(["proxy", "--upstream", "http://127.0.0.1:9"]))


def seconds(value: str) -> float:
    assert value.endswith("s")
    return float(value[:-1])


def test_the_page_shows_the_files_themselves() -> None:
    shown = re.findall(r'^--8<-- "(.+)"$', (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)

    assert shown == ["Containerfile", "deploy/nginx.conf", "deploy/envoy.yaml"]
    assert all((ROOT / name).is_file() for name in shown)


def test_envoy_waits_longer_than_the_proxy_and_sends_nothing_twice() -> None:
    resources: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "envoy.yaml").read_text())["static_resources"]
    (listener,), (cluster,) = resources["listeners"], resources["clusters"]
    (network_filter,) = listener["filter_chains"][0]["filters"]
    manager = network_filter["typed_config"]
    (only,) = manager["route_config"]["virtual_hosts"][0]["routes"]
    route, shown = only["route"], only["match"]["safe_regex"]["regex"]

    waits = max(DEFAULTS.deadlines.first_byte or 0, DEFAULTS.deadlines.idle or 0)
    assert seconds(manager["stream_idle_timeout"]) > waits
    assert seconds(route["timeout"]) == 0
    assert route["retry_policy"]["retry_on"] == "connect-failure"
    assert [each["name"] for each in manager["http_filters"]] == ["envoy.filters.http.router"]
    assert all(re.fullmatch(shown, path) for path in (*CHAT_PATHS, *MESSAGES_PATHS))
    assert not any(re.fullmatch(shown, path) for path in ("/metrics", "/readyz", "/healthz"))
    assert route["cluster"] == cluster["name"] == cluster["load_assignment"]["cluster_name"]
    assert cluster["health_checks"][0]["http_health_check"]["path"] == "/readyz"


def test_nginx_waits_longer_than_the_proxy_and_takes_the_same_bodies() -> None:
    lines = (ROOT / "deploy" / "nginx.conf").read_text()

    def directive(name: str) -> str:
        found = re.search(rf"^ *{name} (\S+);", lines, re.MULTILINE)
        assert found is not None
        return found[1]

    assert seconds(directive("proxy_read_timeout")) > max(
        DEFAULTS.deadlines.first_byte or 0, DEFAULTS.deadlines.idle or 0
    )
    assert int(directive("client_max_body_size").removesuffix("m")) * 1024 * 1024 == DEFAULTS.max_body_bytes
    assert directive("proxy_buffering") == "off"
    assert directive("proxy_next_upstream") == "error"


def test_the_containers_command_is_a_command() -> None:
    text = (ROOT / "Containerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (\[.+\])$", text, re.MULTILINE)
    words = yaml.safe_load(entry)
    (example,) = re.findall(r"podman run .* glmsse-proxy (.+)$", text, re.MULTILINE)

    args = build_parser().parse_args([*words[1:], *shlex.split(example.replace("URL", "http://127.0.0.1:9"))])

    assert words[0] == "/opt/glmsse/bin/glmsse"
    assert (args.host, args.port) == ("0.0.0.0", int(re.findall(r"^EXPOSE (\d+)$", text, re.MULTILINE)[0]))
