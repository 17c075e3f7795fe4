"""Policies for common arguments: paths, URLs, amounts. Each resolves what the argument means, then compares.

A policy is any callable that takes a `ProposedCall`: True lets it pass, a str refuses with a hint for the model, and
anything else, or an exception, refuses. A policy judges what it sees when it is asked; a tool that follows redirects,
or opens a path that others can change in between, has to look again at what it really opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from os import PathLike
from pathlib import Path
from typing import Any, Union

from ._repr import shape
from .errors import MisuseError


@dataclass(frozen=True, slots=True, repr=False)
class ProposedCall:
    """What a policy sees of a call. `context` is what the application gave to the gate, such as the user.

    arguments               the parsed object; each policy of a rule sees the same one
    call_id, choice, index  of the call, as in its ToolCall
    """

    name: str
    arguments: dict[str, Any]
    context: object = None
    call_id: str = ""
    choice: int = 0
    index: int = 0

    def __repr__(self) -> str:
        return f"ProposedCall(name={shape(self.name)}, arguments={shape(self.arguments)})"


Policy = Callable[[ProposedCall], object]
Resolve = Callable[[str], Iterable[str]]
"""A host name → its addresses, as text; the application's own resolver."""

Address = Union[IPv4Address, IPv6Address]

_DEFAULT_PORTS = {"https": 443, "http": 80, "wss": 443, "ws": 80}
_HOST_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
_NAT64 = IPv6Network("64:ff9b::/96")


def path_within(argument: str, *roots: str | PathLike[str], optional: bool = False) -> Policy:
    """The argument, a path or a list of paths, must lie within one of the folders, symbolic links followed.

    Relative paths are below the first folder. `..`, a leading `~`, control characters and NUL are refused as they are.
    MisuseError without a folder.

    optional  the argument may be absent
    """
    _check_argument(argument)
    if not roots:
        raise MisuseError("path_within takes at least one folder")
    folders = [Path(root) for root in roots]

    def policy(call: ProposedCall) -> object:
        refusal = f"{argument}: not within the allowed folders"
        values = _texts(call, argument)
        if values is None:
            return _absent(call, argument, optional)
        resolved = [folder.resolve() for folder in folders]
        for value in values:
            if not _harmless_path(value):
                return refusal
            try:
                path = (resolved[0] / value).resolve()
                unresolved = any(step.is_symlink() for step in (path, *path.parents))
            except (OSError, RuntimeError, ValueError):
                return refusal
            if unresolved:  # a loop of links, which some Python versions leave as it is
                return refusal
            if not any(path.is_relative_to(folder) for folder in resolved):
                return refusal
        return True

    return policy


def url_within(
    argument: str,
    *,
    hosts: Iterable[str] | None = None,
    schemes: Iterable[str] = ("https",),
    resolve: Resolve | None = None,
    optional: bool = False,
) -> Policy:
    """The argument, a URL or a list of URLs, must lead to an allowed place.

    hosts     `example.com`, `*.example.com` (any name below it), `example.com:8443`, `192.0.2.7`, `[2001:db8::7]`;
              without a port the scheme's own one is meant. None allows any host, and then resolve is needed
    resolve   if given, every address of the host must be public, IPv4 inside of IPv6 looked at as IPv4
    optional  the argument may be absent

    Refused as they are: user information (`@`), backslashes, `%` in the host, a trailing dot, addresses in any other
    spelling than the usual one, all characters beyond printable ASCII.
    """
    _check_argument(argument)
    if isinstance(hosts, str) or isinstance(schemes, str):
        raise MisuseError("hosts and schemes take a list of words")
    if hosts is None and resolve is None:
        raise MisuseError("url_within takes hosts, or resolve, or both")
    if resolve is not None and not callable(resolve):
        raise MisuseError(f"resolve takes a callable, not {type(resolve).__name__}")
    allowed_schemes = frozenset(schemes)
    allowed_hosts = None if hosts is None else [_AllowedHost(host) for host in hosts]

    def policy(call: ProposedCall) -> object:
        refusal = f"{argument}: not an allowed address"
        values = _texts(call, argument)
        if values is None:
            return _absent(call, argument, optional)
        for value in values:
            place = _place_of(value, allowed_schemes)
            if place is None:
                return refusal
            if allowed_hosts is not None and not any(allowed.matches(*place) for allowed in allowed_hosts):
                return refusal
            if resolve is not None and not _all_public(place[1], resolve):
                return refusal
        return True

    return policy


def amount_within(argument: str, *, maximum: float, minimum: float = 0, optional: bool = False) -> Policy:
    """The argument must be a number from minimum to maximum, both included, in whatever unit the tool counts.

    True, NaN and numbers as text are refused. MisuseError for bounds that are no numbers.
    """
    _check_argument(argument)
    for name, value in (("minimum", minimum), ("maximum", maximum)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise MisuseError(f"{name} takes a number, not {type(value).__name__}")

    def policy(call: ProposedCall) -> object:
        value = call.arguments.get(argument)
        if value is None:
            return _absent(call, argument, optional)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not minimum <= value <= maximum:
            return f"{argument}: not a number from {minimum} to {maximum}"
        return True

    return policy


class _AllowedHost:
    """One entry of `hosts`."""

    def __init__(self, entry: str) -> None:
        name = entry.lower() if isinstance(entry, str) else ""
        self._below = name.startswith("*.")
        parsed = _host_and_port(name[2:] if self._below else name)
        if parsed is None or (self._below and _as_address(parsed[0]) is not None):
            raise MisuseError("hosts takes names such as example.com, *.example.com or example.com:8443")
        self._host, self._port = parsed

    def matches(self, scheme: str, host: str, port: int | None) -> bool:
        default = _DEFAULT_PORTS.get(scheme)
        if (port or default) != (self._port or default):
            return False
        return host.endswith("." + self._host) if self._below else host == self._host


def _place_of(url: str, schemes: frozenset[str]) -> tuple[str, str, int | None] | None:
    """Scheme, host and port of a URL that every reader understands in the same way; None for any other."""
    if not all("!" <= char <= "~" for char in url) or "\\" in url:
        return None
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in schemes:
        return None
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    parsed = _host_and_port(rest.lower())
    return None if parsed is None else (scheme, *parsed)


def _host_and_port(authority: str) -> tuple[str, int | None] | None:
    """The host in its one spelling (addresses too) and the port; None for what is not plain."""
    if authority.startswith("["):
        host, bracket, rest = authority[1:].partition("]")
        address = _as_address(host)
        if not bracket or not isinstance(address, IPv6Address) or "%" in host or (rest and rest[0] != ":"):
            return None
        host, colon, port = str(_plain(address)), rest[:1], rest[1:]
    else:
        host, colon, port = authority.partition(":")
        if not _is_plain_name(host):
            return None
    if not colon:
        return host, None
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) <= 65535):
        return None
    return host, int(port)


def _is_plain_name(host: str) -> bool:
    labels = host.split(".")
    if not _HOST_CHARS.issuperset(host) or not all(labels):
        return False
    # The WHATWG URL rules read a name whose last label is a number as an address, in many spellings.
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        return isinstance(_as_address(host), IPv4Address)
    return True


def _as_address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, where it does."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


def _all_public(host: str, resolve: Resolve) -> bool:
    literal = _as_address(host)
    if literal is not None:
        return _is_public(literal)
    addresses = [_as_address(text.partition("%")[0]) for text in resolve(host)]
    return bool(addresses) and all(address is not None and _is_public(address) for address in addresses)


def _is_public(address: Address) -> bool:
    plain = _plain(address)
    return plain.is_global and not plain.is_multicast and not plain.is_reserved


def _harmless_path(value: str) -> bool:
    if not value or value.startswith("~") or any(char < " " or char == "\x7f" for char in value):
        return False
    return ".." not in value.replace("\\", "/").split("/")


def _texts(call: ProposedCall, argument: str) -> list[str] | None:
    """The strings of an argument that is one or a list of them; None if it is absent, null or something else."""
    value = call.arguments.get(argument)
    values: list[Any] = value if isinstance(value, list) else [value]
    return values if values and all(isinstance(item, str) for item in values) else None


def _absent(call: ProposedCall, argument: str, optional: bool) -> object:
    if call.arguments.get(argument) is not None:
        return f"{argument}: of another type than expected"
    return True if optional else f"{argument}: missing"


def _check_argument(argument: object) -> None:
    if not isinstance(argument, str) or not argument:
        raise MisuseError(f"argument takes the name of an argument, not {type(argument).__name__}")
