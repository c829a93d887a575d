"""The memory of this host."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def free_bytes() -> int:
    """Bytes that Linux can still give, at most up to its limit for this process's group; `2**62` where it
    tells neither, as other systems do."""
    found = [2**62]
    with suppress(OSError, KeyError, ValueError):
        found.append(_field("meminfo", "MemAvailable"))
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())  # "max" without one
        found.append(limit - int((group / "memory.current").read_text()))
    return max(0, min(found))


def peak_bytes(pids: Iterable[int]) -> int:
    """The most bytes that one of some processes has held; 0 where nobody tells."""
    with suppress(OSError, KeyError, ValueError):
        return max(_field(f"{pid}/status", "VmHWM") for pid in pids)
    return 0


def _field(file: str, name: str) -> int:
    """A figure of a file of ``/proc``, which has it in KiB."""
    fields = dict(line.split(":", 1) for line in (Path("/proc") / file).read_text().splitlines())
    return int(fields[name].split()[0]) * 1024
