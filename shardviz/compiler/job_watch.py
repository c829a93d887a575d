"""The processes of a job: how they meet, and how each hears that another one is lost.

JAX's own coordinator notices a lost process after a minute or more, says little of it, and ends the others by
a crash. So the parents of the children that run JAX keep a connection of their own. Process 0 has a `_Hub` at
the coordinator's address; every process, 0 too, is a `JobWatch` that is connected to it:

    a process                      the hub
    hello ───────────────────────▶ all are there?
    on_missing ◀── missing ─────── (no: who is missing)
    join returns ◀── start ─────── hosts, and a free port for JAX's coordinator
    alive ◀──────▶ alive           every `BEAT_S`
    failed ──────────────────────▶ waits `CAUSE_S` for a better cause: one loss makes others fail
    on_lost ◀── lost ───────────── who was lost, and why; also where a connection closes
    done ────────────────────────▶ all are done?
    finish returns ◀── over ──────

Messages are lines of JSON: nothing that comes from the network is executed."""

from __future__ import annotations

import itertools
import json
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from shardviz.errors import CompilerError, JobLost

if TYPE_CHECKING:
    from shardviz.devices.job import JobAddress

BEAT_S = 2.0
"""The interval at which a process and the hub show each other that they are there."""
SILENT_BEATS = 10
"""A connection that is silent for so many of these is lost. They are counted and not timed, since a process
that was suspended has heard nothing either."""
CAUSE_S = 1.0
"""The hub waits so long for a better cause of a loss."""
ANSWER_S = 5.0
"""And so long for the others, where one process says that it got an error: they may all get it."""
RETRY_S = 0.2
MAX_LINE = 1 << 16
"""Bytes of a message; our processes send no longer ones."""
MAX_LISTED = 8
STRANGE = "sent an invalid message"


class Cause(IntEnum):
    """The reason why a process is lost; of several in one job the smallest number tells it best."""

    GONE = 0
    FAILED = 1
    ABORTED = 2
    REFUSED = 3


@dataclass(frozen=True)
class JobStart:
    """All processes are there: `hosts` by process; JAX's coordinator is to be at `coordinator`."""

    coordinator: str
    hosts: tuple[str, ...]


class _Connection:
    """A connection between a process and the hub. `silent` counts the beats since something was heard; the
    hub knows the `process` and its `host` once it has said hello, and that it `is_done`."""

    def __init__(self, socket: socket.socket) -> None:
        self.socket = socket
        socket.settimeout(BEAT_S)
        self.silent, self.process, self.host, self.is_done = 0, -1, "", False
        self._pending = b""
        self._sending = threading.Lock()

    def send(self, **message: Any) -> None:
        with self._sending, suppress(OSError):  # who listens hears of its end
            self.socket.sendall(json.dumps(message).encode() + b"\n")

    def received(self) -> list[dict[str, Any]]:
        """The messages that have come. Raises `TimeoutError` where none has within a beat, `EOFError` at the
        end of the connection, and `ValueError` for what no process of a job sends."""
        try:
            data = self.socket.recv(MAX_LINE)
        except TimeoutError:
            raise
        except OSError as error:
            raise EOFError from error
        if not data:
            raise EOFError
        self.silent = 0
        *lines, self._pending = (self._pending + data).split(b"\n")
        messages = [json.loads(line) for line in lines]
        if len(self._pending) > MAX_LINE or not all(isinstance(message, dict) for message in messages):
            raise ValueError
        return messages


class JobWatch:
    """This process in a job: it meets the others, within `limit_s` seconds, and hears when one of them is
    lost: `on_lost` is called at most once, from a thread. The process itself is to call `failed` when it
    cannot go on, and `finish` at its end."""

    def __init__(self, job: JobAddress, limit_s: float, on_lost: Callable[[JobLost], None]) -> None:
        assert job.coordinator is not None and job.processes is not None and job.process is not None  # noqa: PT018
        self.process, self.processes = job.process, job.processes
        host, _, port = job.coordinator.rpartition(":")
        # JAX writes IPv6 addresses with and without brackets.
        self._host, self._port = host.removeprefix("[").removesuffix("]"), int(port)
        self._limit_s, self._on_lost = limit_s, on_lost
        self._hub: _Hub | None = None
        self._connection: _Connection | None = None
        self._changed = threading.Condition()
        self._missing: tuple[int, ...] | None = None
        self._start: JobStart | None = None
        self._failure: dict[str, Any] | None = None
        self._lost: JobLost | None = None
        self._is_done = self._is_over = self._is_common = self._is_closed = False

    def join(self, on_progress: Callable[[str], None]) -> JobStart:
        """Wait until all processes are there; `on_progress` hears for whom. Raises `CompilerError` where
        process 0 cannot listen at the address or does not come there, `JobLost`, `EOFError` after `close`."""
        if self.process == 0:
            self._hub = _Hub(self._host, self._port, self.processes, self._limit_s)
        self._connect(on_progress)
        told = None
        with self._changed:
            while self._start is None and self._lost is None and not self._is_closed:
                if self._missing and self._missing != told:
                    told = self._missing
                    on_progress(f"waiting for {named_processes(told)} of {self.processes:,}")
                self._changed.wait(BEAT_S)
            if self._start is not None:
                return self._start
            raise self._lost or EOFError

    def failed(self, why: str, cause: Cause) -> None:
        """Tell the others, once they are there, that this process cannot go on; its name precedes `why`."""
        self._failure = {"failed": why, "cause": int(cause)}
        if self._connection is not None:
            self._connection.send(**self._failure)

    def lost(self) -> JobLost | None:
        """Wait for the reason why the job is over, after `failed`; None where all processes got one error and
        the job goes on, and after `close`. The hub decides, however busy its machine is, or falls silent."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_common or self._has_ended)
            self._is_common = False
            return self._lost

    @property
    def _has_ended(self) -> bool:
        return self._lost is not None or self._is_over or self._is_closed

    def finish(self, failed: str = "") -> None:
        """Leave the job: as soon as all are done or, after `failed`, as soon as they know of that."""
        connection = self._connection
        if self._lost is not None or connection is None or not (self._start or failed):
            return
        if failed:
            self.failed(failed, Cause.FAILED)
        else:
            self._is_done = True
            connection.send(done=1)
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended, CAUSE_S + BEAT_S if failed else None)

    def close(self) -> None:
        """End the connections; the others take a process that was not done as lost."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._hub is not None:
            self._hub.is_closed = True
        if self._connection is not None:
            self._connection.socket.close()

    def _connect(self, on_progress: Callable[[str], None]) -> None:
        """Connect to the hub, which may come later than this process."""
        host = "localhost" if self._hub is not None else self._host
        end = time.monotonic() + self._limit_s
        at, told = f"{self._host}:{self._port}", ""
        while not self._is_closed:
            try:
                connection = _Connection(socket.create_connection((host, self._port), timeout=BEAT_S))
            except OSError as error:
                words = error.strerror or str(error)
                if time.monotonic() > end:
                    late = f"was not reached at {at} within {self._limit_s:g} s: {words}"
                    hint = "start every process with the same coordinator; process 0 runs on that host"
                    raise CompilerError(f"process 0 of {self.processes:,} {late}", hint) from error
                if words != told:
                    told = words
                    on_progress(f"waiting for process 0 of {self.processes:,} at {at} ({words})")
                time.sleep(RETRY_S)
                continue
            self._connection = connection
            connection.send(hello=self.process, processes=self.processes, host=socket.gethostname())
            if self._failure is not None:
                connection.send(**self._failure)
            threading.Thread(target=self._listen, name="shardviz-job", args=[connection], daemon=True).start()
            return

    def _listen(self, connection: _Connection) -> None:
        for message in _heard(connection):
            with self._changed:
                match message:
                    case {"missing": missing}:
                        self._missing = tuple(missing)
                    case {"start": port, "hosts": hosts}:
                        host = f"[{self._host}]" if ":" in self._host else self._host
                        self._start = JobStart(f"{host}:{port}", tuple(hosts))
                    case {"lost": why}:
                        self._lost = JobLost(why, self.process, is_told=self.process != 0)
                    case {"common": _}:
                        self._is_common = True
                    case {"over": _}:
                        self._is_over = True
                self._changed.notify_all()
            if self._lost is not None or self._is_over:
                break
            if "alive" in message:
                connection.send(alive=1)
        with self._changed:
            if self._lost is None and self._is_done:
                self._is_over = True  # all others may be done too, and then process 0 has ended
            if not self._has_ended:
                where = f" on {self._start.hosts[0]}" if self._start else ""
                why = f"process 0 of {self.processes}{where} is gone, and it led the job"
                self._lost = JobLost(why, self.process)
            self._changed.notify_all()
        if self._lost is not None and not self._is_over and not self._is_closed:
            self._on_lost(self._lost)


def _heard(connection: _Connection) -> Iterator[dict[str, Any]]:
    """The hub's messages until its connection closes, or is silent for too long."""
    while connection.silent <= SILENT_BEATS:
        try:
            yield from connection.received()
        except TimeoutError:
            connection.silent += 1
        except (EOFError, ValueError):
            return


class _Hub:
    """Process 0's meeting point, in a thread of its own. Raises `CompilerError` where it cannot listen."""

    def __init__(self, host: str, port: int, processes: int, limit_s: float) -> None:
        self._processes, self._limit_s = processes, limit_s
        self._meets_until = time.monotonic() + limit_s
        self._members: dict[int, _Connection] = {}
        self._strangers: list[_Connection] = []
        self._failures: dict[int, tuple[Cause, str]] = {}
        self._decided_at = float("inf")
        self._has_started = False
        self._lost: dict[str, str] = {}
        self._only_here = host in ("localhost", "127.0.0.1", "::1")
        self._listener = self._listening(host, port)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self.is_closed = False
        threading.Thread(target=self._serve, name="shardviz-job-hub", daemon=True).start()

    def _listening(self, host: str, port: int) -> socket.socket:
        try:
            if self._only_here:
                return socket.create_server(("localhost", port))
            if socket.has_dualstack_ipv6():
                return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
            return socket.create_server(("", port))
        except OSError as error:
            problem = f"process 0 cannot listen at {host}:{port}: {os.strerror(error.errno or 0)}"
            hint = "choose another port of the coordinator, the same in all processes"
            raise CompilerError(problem, hint) from error

    def _serve(self) -> None:
        beat_at = time.monotonic() + BEAT_S
        while not self.is_closed:
            wait = min(beat_at, self._decided_at) - time.monotonic()
            for key, _ in self._selector.select(max(0.0, min(wait, BEAT_S))):
                if key.data is not None:
                    self._read(key.data)
                    continue
                with suppress(OSError):
                    member = _Connection(self._listener.accept()[0])
                    self._strangers.append(member)
                    self._selector.register(member.socket, selectors.EVENT_READ, member)
            now = time.monotonic()
            if now >= self._decided_at:
                self._decided_at = float("inf")
                self._end(min(self._failures.values(), key=lambda failure: failure[0])[1])
            if now >= self._meets_until:
                self._meets_until = float("inf")
                late = f"{named_processes(self._missing())} of {self._processes:,} did not join"
                self._end(f"{late} within {self._limit_s:g} s")
            if now >= beat_at:
                beat_at = now + BEAT_S
                for member in [*self._members.values(), *self._strangers]:
                    member.silent += 1
                    if member.silent > (5 if member.process < 0 else SILENT_BEATS):
                        self._leave(member, f"has not answered for {SILENT_BEATS * BEAT_S:g} s")
                self._tell(alive=1)
        for member in [*self._members.values(), *self._strangers]:
            member.socket.close()
        self._selector.close()
        self._listener.close()

    def _read(self, member: _Connection) -> None:
        try:
            for message in member.received():
                self._hear(member, message)
        except (EOFError, TimeoutError):
            self._leave(member, "is gone")
        except (ValueError, TypeError, KeyError):
            self._leave(member, STRANGE)

    def _hear(self, member: _Connection, message: dict[str, Any]) -> None:
        match message:
            case {"hello": int(process), "processes": int(count), "host": str(host)} if member.process < 0:
                self._welcome(member, process, count, host)
            case {"failed": str(why), "cause": int(cause)} if member.process >= 0:
                self._fail(member.process, Cause(cause), why)
            case {"done": _} if member.process >= 0:
                member.is_done = True
                if self._has_started and all(member.is_done for member in self._members.values()):
                    self._tell(over=1)
            case {"alive": _} if member.process >= 0:
                pass
            case _:
                self._leave(member, STRANGE)

    def _welcome(self, member: _Connection, process: int, processes: int, host: str) -> None:
        self._strangers.remove(member)
        member.process, member.host = process, host
        if processes != self._processes:
            why = f"was started in a job of {processes:,}, and process 0 in one of {self._processes:,}"
            self._refuse(member, why)
        elif process in self._members:
            self._refuse(member, f"was started twice, on {self._members[process].host} and on {host}")
        elif not 0 <= process < processes:
            self._refuse(member, "does not exist")
        else:
            self._members[process] = member
            if self._lost:
                self._tell(**self._lost)
            elif missing := self._missing():
                self._tell(missing=missing)
            else:
                self._has_started, self._meets_until = True, float("inf")
                hosts = [self._members[number].host for number in range(processes)]
                with socket.create_server(("localhost" if self._only_here else "", 0)) as unused:
                    port = unused.getsockname()[1]
                self._tell(start=port, hosts=hosts)

    def _missing(self) -> tuple[int, ...]:
        missing = (process for process in range(self._processes) if process not in self._members)
        return tuple(itertools.islice(missing, MAX_LISTED + 1))

    def _refuse(self, member: _Connection, why: str) -> None:
        words = f"process {member.process:,} of {self._processes:,} {why}"
        self._selector.unregister(member.socket)
        member.send(lost=words)
        member.socket.close()
        self._end(words)

    def _leave(self, member: _Connection, why: str) -> None:
        """End a connection; that of a process which is not done is a loss."""
        if member.socket.fileno() < 0:
            return
        self._selector.unregister(member.socket)
        member.socket.close()
        if member in self._strangers:
            self._strangers.remove(member)
        elif not member.is_done and self._members.get(member.process) is member:
            if not self._has_started:
                del self._members[member.process]
            self._fail(member.process, Cause.GONE, why, member.host)

    def _fail(self, process: int, cause: Cause, why: str, host: str = "") -> None:
        on = f" on {host or self._members[process].host}"
        words = f"process {process:,} of {self._processes:,}{on} {why}"
        self._failures.setdefault(process, (cause, words))
        refused = [cause for cause, _ in self._failures.values() if cause == Cause.REFUSED]
        if len(refused) == self._processes:
            self._failures.clear()
            self._decided_at = float("inf")
            self._tell(common=1)
            return
        wait = ANSWER_S if cause == Cause.REFUSED else CAUSE_S
        self._decided_at = min(self._decided_at, time.monotonic() + wait)

    def _end(self, words: str) -> None:
        """The job is over; who comes later hears of it too."""
        self._lost = {"lost": words}
        self._tell(**self._lost)

    def _tell(self, **message: Any) -> None:
        """Send to all, to process 0 at the end: it may be gone soon after, and the hub with it."""
        for _, member in sorted(self._members.items(), reverse=True):
            member.send(**message)


def named_processes(numbers: tuple[int, ...]) -> str:
    """``process 2``, ``processes 2 and 3``; of many the first ones."""
    *most, last = [*map(str, numbers[:MAX_LISTED]), *["others"] * (len(numbers) > MAX_LISTED)]
    return f"processes {', '.join(most)} and {last}" if most else f"process {last}"
