"""Who is connected: visitors keep their places, and of all others only the newest stay.

A connection costs the machine a descriptor, also one that never says what it wants.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Set

from aiohttp import web

OTHERS = 64
"""Connections that are no visitor's: a browser opens up to six to load a page."""
_OF_A_SESSION = 6
"""Descriptors: the websocket, three pipes, and two while the process starts."""
_OF_THE_SERVER = 192
"""Descriptors: its own, and the connections that are accepted at once before the oldest are closed."""


def new_connection(server: web.Server, visitors: Set[asyncio.BaseProtocol]) -> web.RequestHandler:
    """The protocol of one more connection. Where there are too many, the oldest that is no visitor's goes."""
    others = [each for each in server.connections if each not in visitors]
    for each in others[: max(0, len(others) + 1 - OTHERS)]:
        if each.transport is not None:
            each.transport.abort()
    return server()


def allow_descriptors(sessions: int) -> None:
    """Raise this process's limit of open files, as far as it may, to what so many sessions need."""
    needed = OTHERS + _OF_THE_SERVER + sessions * _OF_A_SESSION
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
