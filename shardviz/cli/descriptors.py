"""How many files may be open at once. With fewer than Python's imports need they end in a traceback, or, in
a thread that serves a compiler, in no answer at all."""

from __future__ import annotations

LEAST = 24
"""Descriptors of a command that asks two compilers' processes: its own streams, three pipes for each, and two
while one starts or a module loads."""


def allow_descriptors() -> int:
    """Raise this process's limit to what it needs, as far as it may, and return the limit."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return LEAST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= LEAST:
        return LEAST
    allowed = LEAST if hard == resource.RLIM_INFINITY else min(hard, LEAST)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
