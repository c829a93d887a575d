"""The files of a profile: found in a folder, read with progress."""

from __future__ import annotations

import mmap
import struct
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from shardviz.errors import QuestionError, quote
from shardviz.profiles.device_trace import DeviceTrace, Program, ProgramRecord, TraceReading
from shardviz.profiles.xplane import device_ids, hostname, programs, xplane_events
from shardviz.user_files import named_path, open_file

Progress = Callable[[int, int], None]
"""Told how many bytes of how many are read."""
XPLANE = ".xplane.pb"
HOW = "take one: with shardviz.profiled() as p: …, or with jax.profiler.trace(DIR): …"
SESSION = "%Y_%m_%d_%H_%M_%S"
"""JAX's name of the folder of a profile, as `time.strftime` writes it."""
SECOND = len("2026_11_23_13_30_15")
TOGETHER = timedelta(minutes=1)
DAMAGED = (ValueError, EOFError, struct.error, IndexError, OverflowError, RecursionError)
"""Errors of the readers about bytes that are not those of a profile."""


@dataclass(frozen=True)
class ProfileFiles:
    """The contents of a profile's files: the devices of all hosts, the programs, and the machines' names.
    `notes` are warnings, a sentence each."""

    devices: tuple[DeviceTrace, ...]
    programs: tuple[ProgramRecord, ...]
    hosts: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def main(self) -> Program | None:
        """The program that runs longest on all devices; None where no operation names its program."""
        durations: defaultdict[Program, int] = defaultdict(int)
        for device in self.devices:
            programs = [own.program if own.program[0] else None for own in device.instruction_table]
            for number, start, end in zip(device.instructions, device.starts, device.ends, strict=True):
                if (program := programs[number]) is not None:
                    durations[program] += end - start
        return max(durations, key=lambda candidate: durations[candidate], default=None)


def read_trace(name: str, on_progress: Progress = lambda *_: None) -> ProfileFiles:
    """Read a file, or the newest profile in a folder, with the files of all of its hosts. Raises
    `QuestionError` for what is not a profile, breaks off, or has nothing about devices."""
    files = profile_files(name)
    sizes = [file.stat().st_size for file in files]
    devices: list[DeviceTrace] = []
    by_program: dict[Program, ProgramRecord] = {}
    hosts, notes, before = [], [], 0
    for file, size in zip(files, sizes, strict=True):
        host, records, reading, ids = _read(file, on_progress, before, sum(sizes))
        # Of several files the names, by which `profiled` tells several processes of a host apart.
        host = host if len(files) == 1 else host_name(file)
        hosts.append(host)
        devices += reading.devices(host if len(files) > 1 else "", ids)
        for record in records:
            by_program.setdefault(record.program, record)
        if reading.lacks_ends:
            lacks = "this profile lacks the ends of asynchronous operations on the CPU"
            notes.append(f"{lacks}: they look shorter than they are")
        before += size
    if not any(len(device.starts) for device in devices):
        where = quote(name)
        raise QuestionError(f"{where} has no operation of a device", f"profile while a program runs; {HOW}")
    if len(files) > 1:
        notes.append("each process has a clock of its own: waits are compared within a process only")
    return ProfileFiles(tuple(devices), tuple(by_program.values()), tuple(hosts), tuple(dict.fromkeys(notes)))


def profile_files(name: str) -> list[Path]:
    """The files that a name means. Raises `QuestionError` where there is none."""
    where = quote(name)
    try:
        path = named_path(name)
        if name and path.is_dir():
            paths = [*path.rglob(f"*{XPLANE}")]
            if not paths:
                raise QuestionError(f"{where} is a folder without a profile (*{XPLANE})", HOW)
            return _of_newest_session(paths)
        if not name or not path.exists():
            raise QuestionError(f"file {where} does not exist", HOW)
        if name.endswith((".trace.json", ".trace.json.gz")):
            raise QuestionError(f"{where} is a trace for viewers", f"give the *{XPLANE} beside it")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise QuestionError(f"cannot read {where}: {reason}", HOW) from None
    return [path]


def host_name(file: Path) -> str:
    """The host after which JAX names its file."""
    return file.name.removesuffix(XPLANE)


def _of_newest_session(files: Sequence[Path]) -> list[Path]:
    """The files that were written last. Hosts which profile the same steps may have a folder each, named by
    the second: before the newest one comes what others wrote less than a minute earlier."""
    sessions: defaultdict[Path, list[Path]] = defaultdict(list)
    for file in files:
        sessions[file.parent].append(file)
    last, *before = sorted(sessions, key=lambda path: (path.name, path.stat().st_mtime), reverse=True)
    newest, by_name = _written(last), {file.name: file for file in sessions[last]}
    for folder in before:
        own, written = {file.name: file for file in sessions[folder]}, _written(folder)
        is_of_others = folder.parent == last.parent and own.keys().isdisjoint(by_name)
        if not (is_of_others and newest and written and newest - written < TOGETHER):
            break
        by_name |= own
    return [by_name[name] for name in sorted(by_name)]


def _written(session: Path) -> datetime | None:
    """The second that JAX named a folder by, None for another name."""
    try:
        return datetime.strptime(session.name[:SECOND], SESSION)
    except ValueError:
        return None


_Read = tuple[str, list[ProgramRecord], TraceReading, dict[str, int]]
"""A file's host, its programs, its events by device, and the devices' numbers among those of all hosts."""


def _read(file: Path, on_progress: Progress, before: int, total: int) -> _Read:
    where = quote(str(file))
    try:
        with open_file(file) as opened:
            if not opened.peek(1):
                raise QuestionError(f"{where} is empty", HOW)
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
                reading = TraceReading(xplane_events(data, lambda at: on_progress(before + at, total)))
                return hostname(data) or host_name(file), programs(data), reading, device_ids(data)
    except DAMAGED as error:
        # The words of the others are about Python's own types.
        words = str(error) if isinstance(error, ValueError | EOFError) else "it is damaged"
        hint = f"give a *{XPLANE} as jax.profiler wrote it, whole"
        raise QuestionError(f"{where} cannot be read as a profile: {words}", hint) from None
    except OSError as error:
        raise QuestionError(f"cannot read {where}: {error.strerror or error}", HOW) from None
