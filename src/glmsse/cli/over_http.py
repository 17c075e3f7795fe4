"""The measured streams, read over real HTTP from the stand-in provider on loopback. Needs both extras."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import httpx

from ..chat import ChatStream
from ..scenarios import Scenario
from ..server.app import PATHS
from ..server.running import stand_in

READ_WITHIN = 10.0

T = TypeVar("T")


def read_over_http(
    scenarios: Sequence[Scenario], read: Callable[[Scenario, ChatStream, Iterable[bytes]], T]
) -> tuple[str, list[T]]:
    """The server's address, and what `read` makes of each body; OSError if loopback is not to be had."""
    readings = []
    try:
        with stand_in() as base, httpx.Client(trust_env=False, timeout=READ_WITHIN) as client:
            for scenario in scenarios:
                url = base + PATHS["coding" if scenario.name == "coding" else "paas"]
                request = {"model": scenario.name, "stream": True, "messages": [{"role": "user", "content": "demo"}]}
                headers = {"authorization": "Bearer demo", "accept-encoding": "identity"}
                stream = ChatStream(limits=scenario.limits)
                with client.stream("POST", url, json=request, headers=headers) as response:
                    stream.start(response.status_code, response.headers)
                    readings.append(read(scenario, stream, response.iter_raw()))
    except httpx.TransportError as error:
        raise OSError(f"the stand-in provider cannot be read: {type(error).__name__}") from None
    return base, readings
