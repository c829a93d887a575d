"""The port that the server listens at."""

from __future__ import annotations

import errno
import os
import socket

from shardviz.errors import QuestionError, quote

LOOKED_AT = 100
"""How many ports after one in use are tried for the hint."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one.

    Raises `QuestionError` for a host that is not this machine's, and for a port that is in use; it then names
    the next free one.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise QuestionError(
            f"there is no host {quote(host)}", "--host 127.0.0.1 is this machine alone"
        ) from None
    try:
        return _bound(family, (address[0], port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            free = _next_free(family, str(address[0]), port)
            raise QuestionError(f"port {port} of {host} is in use", _use(free)) from None
        if error.errno == errno.EACCES:
            raise QuestionError(
                f"port {port} is not for everybody", "take one from 1024 on: --port 8000"
            ) from None
        raise QuestionError(
            f"{quote(host)} cannot be served from: {os.strerror(error.errno or 0)}",
            "--host 127.0.0.1 is this machine alone, 0.0.0.0 all its networks",
        ) from None


def _bound(family: int, address: tuple[str | int, int]) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # A server that has just ended leaves its port waiting for a minute.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


def _next_free(family: int, host: str, port: int) -> int | None:
    for other in range(port + 1, min(port + 1 + LOOKED_AT, 65_536)):
        try:
            _bound(family, (host, other)).close()
        except OSError:
            continue
        return other
    return None


def _use(free: int | None) -> str:
    return "give another with --port" if free is None else f"the next free one is {free}: --port {free}"
