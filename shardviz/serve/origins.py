"""Whose pages may talk to the server: its own, under a name that nobody elsewhere can give to it.

A browser runs scripts of any page, also against servers on this machine, and a name of the attacker's may
lead here (DNS rebinding). Each request names its server (Host), each websocket the page it comes from
(Origin).
"""

from __future__ import annotations

import re
import socket
from ipaddress import ip_address

_HOST = re.compile(
    r"(?:(?P<name>[a-z0-9._-]+)|\[(?P<ipv6>[0-9a-f:.]+)\])(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII
)


def is_our_host(host: str, served_as: str) -> bool:
    """Whether a Host header names this machine: an address, localhost, its name, or as what it is served."""
    named = _HOST.fullmatch(host)
    if named is None:
        return False
    name, own = (named["name"] or named["ipv6"]).lower(), socket.gethostname().lower()
    return _is_address(name) or name in {"localhost", served_as.lower(), own, f"{own}.local"}


def is_same_origin(origin: str, host: str) -> bool:
    """Whether an Origin header is that of a page of the server that the Host header names."""
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


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
