"""The address that the server listens at, and the names under which pages may reach it.

A browser runs scripts of any page, also against servers on this machine, and a name of the attacker's may
lead here (DNS rebinding). So each request has to name its server (Host), and each websocket the page that it
comes from (Origin)."""

from __future__ import annotations

import errno
import os
import re
import socket
from contextlib import suppress
from ipaddress import ip_address

from shardviz.errors import QuestionError, quote

MAX_TRIED = 100
"""Ports after one in use that are tried for the hint."""
_HOST = re.compile(
    r"(?:(?P<name>[a-z0-9._-]+)|\[(?P<ipv6>[0-9a-f:.]+)\])(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII
)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one. Raises `QuestionError` for a host that is not this
    machine's, and for a port that is in use; it then names the next free one."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        problem = f"there is no host {quote(host)}"
        raise QuestionError(problem, "--host 127.0.0.1 is this machine alone") from None
    try:
        return _bound(family, (address[0], port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            free = _next_free(family, str(address[0]), port)
            use = (
                "give another with --port" if free is None else f"the next free one is {free}: --port {free}"
            )
            raise QuestionError(f"port {port} of {host} is in use", use) from None
        if error.errno == errno.EACCES:
            problem = f"no permission to listen on port {port}"
            raise QuestionError(problem, "use 1024 or above: --port 8000") from None
        problem = f"{quote(host)} cannot be served from: {os.strerror(error.errno or 0)}"
        hint = "--host 127.0.0.1 is this machine alone, 0.0.0.0 all its networks"
        raise QuestionError(problem, hint) from None


def is_our_host(host: str, served_as: str) -> bool:
    """Return whether a Host header names this machine: by an address, localhost, its name, or `served_as`."""
    named = _HOST.fullmatch(host)
    if named is None:
        return False
    name, own = (named["name"] or named["ipv6"]).lower(), socket.gethostname().lower()
    with suppress(ValueError):
        return bool(ip_address(name))
    return name in {"localhost", served_as.lower(), own, f"{own}.local"}


def is_same_origin(origin: str, host: str) -> bool:
    """Return whether an Origin header is of a page of the server that the Host header names."""
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and rest != "" and rest.lower() == host.lower()


def own_address() -> str:
    """The address of this machine in its network, where others find it; empty without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # looks for a way there, and sends nothing
        except OSError:
            return ""
        return str(asking.getsockname()[0])


def _bound(family: int, address: tuple[str | int, int]) -> socket.socket:
    is_dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server(address, family=family, backlog=128, dualstack_ipv6=is_dual)


def _next_free(family: int, host: str, port: int) -> int | None:
    for other in range(port + 1, min(port + 1 + MAX_TRIED, 65_536)):
        with suppress(OSError):
            _bound(family, (host, other)).close()
            return other
    return None
