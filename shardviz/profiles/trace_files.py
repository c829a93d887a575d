"""The files of a profile: found in a folder, told apart by their beginning, read with progress."""

from __future__ import annotations

import gzip
import io
import mmap
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from shardviz.errors import QuestionError, quote
from shardviz.profiles.chrome_trace import chrome_events
from shardviz.profiles.device_trace import DeviceTrace, TraceReading
from shardviz.profiles.trace_event import ProgramRecord, TraceEvent
from shardviz.profiles.xplane import hostname, programs, xplane_events

Progress = Callable[[int, int], None]
"""Told how many bytes of how many are read."""
XPLANE, CHROME = ".xplane.pb", ".trace.json.gz"
HOW = "take one: with shardviz.profiled() as p: …, or with jax.profiler.trace(DIR): …"
GZIP = b"\x1f\x8b"
DAMAGED = (ValueError, EOFError, zlib.error, gzip.BadGzipFile, IndexError, OverflowError, RecursionError)
"""Errors of the readers about bytes that are not those of a profile."""


@dataclass(frozen=True)
class ProfileFiles:
    """The contents of a profile's files: the devices of all hosts, and the programs.

    `hosts` are the machines' names in the order of the files. `notes` are warnings, a sentence each.
    """

    devices: tuple[DeviceTrace, ...]
    programs: tuple[ProgramRecord, ...]
    hosts: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_trace(name: str, on_progress: Progress = lambda *_: None) -> ProfileFiles:
    """Read a file, or the newest profile in a folder, with the files of all of its hosts.

    Raises `QuestionError` for what is not a profile, breaks off, or has nothing about devices.
    """
    files = profile_files(name)
    sizes = [file.stat().st_size for file in files]
    devices: list[DeviceTrace] = []
    found: dict[tuple[str, int], ProgramRecord] = {}
    hosts, notes, before = [], [], 0
    for file, size in zip(files, sizes, strict=True):
        done = before

        def tell(at: int, done: int = done) -> None:
            on_progress(done + at, sum(sizes))

        host, records, reading = _read(file, tell)
        host = file.name.removesuffix(XPLANE) if host in hosts else host
        hosts.append(host)
        devices += reading.devices(host if len(files) > 1 else "")
        for record in records:
            found.setdefault((record.name, record.program_id), record)
        notes += [note for note in reading.notes if note not in notes]
        before += size
    if not any(len(device.starts) for device in devices):
        where = quote(name)
        raise QuestionError(f"{where} has no operation of a device", f"profile while a program runs; {HOW}")
    if len(files) > 1:
        notes.append("each host has a clock of its own: waits are compared within a host only")
    return ProfileFiles(tuple(devices), tuple(found.values()), tuple(hosts), tuple(notes))


def profile_files(name: str) -> list[Path]:
    """The files that a name means. Raises `QuestionError` where there is none."""
    path, where = Path(name), quote(name)
    try:
        if name and path.is_dir():
            found = [*path.rglob(f"*{XPLANE}")] or [*path.rglob(f"*{CHROME}")]
            if not found:
                raise QuestionError(f"{where} is a folder without a profile (*{XPLANE})", HOW)
            newest = max(found, key=lambda each: (each.parent.name, each.stat().st_mtime)).parent
            return sorted(each for each in found if each.parent == newest)
        if not name or not path.exists():
            raise QuestionError(f"file {where} does not exist", HOW)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise QuestionError(f"cannot read {where}: {reason}", HOW) from None
    return [path]


def _read(file: Path, tell: Callable[[int], None]) -> tuple[str, list[ProgramRecord], TraceReading]:
    where = quote(str(file))
    try:
        with file.open("rb") as opened:
            head = opened.peek(64)
            if not head:
                raise QuestionError(f"{where} is empty", HOW)
            if head.startswith(GZIP) or head.lstrip()[:1] in (b"{", b"["):
                return _read_chrome(file, opened, tell)
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
                reading = _collected(xplane_events(data, tell))
                return hostname(data) or file.name.removesuffix(XPLANE), programs(data), reading
    except DAMAGED as error:
        # The words of the others are about Python's own types.
        words = str(error) if isinstance(error, ValueError | EOFError | zlib.error) else "it is damaged"
        raise QuestionError(
            f"{where} cannot be read as a profile: {words}",
            "give a *.xplane.pb or *.trace.json.gz as jax.profiler wrote it, whole",
        ) from None
    except OSError as error:
        raise QuestionError(f"cannot read {where}: {error.strerror or error}", HOW) from None


def _read_chrome(
    file: Path, opened: BinaryIO, tell: Callable[[int], None]
) -> tuple[str, list[ProgramRecord], TraceReading]:
    head = opened.read(len(GZIP))
    opened.seek(0)
    source: BinaryIO = gzip.GzipFile(fileobj=opened) if head == GZIP else opened  # type: ignore[assignment]
    with io.TextIOWrapper(source, encoding="utf-8", errors="replace") as text:
        reading = _collected(chrome_events(text, lambda: tell(opened.tell())))
    return file.name.partition(".")[0], [], reading


def _collected(events: Iterator[TraceEvent]) -> TraceReading:
    reading = TraceReading()
    for event in events:
        reading.add(event)
    return reading
