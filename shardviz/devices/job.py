"""A job: processes, on one host or many, that run one program on the devices of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.errors import QuestionError, quote
from shardviz.sharding import Mesh


@dataclass(frozen=True)
class JobAddress:
    """The place where the processes of a job meet: `coordinator` is "host:port" of process 0, `processes`
    their number and `process` the own one. Without them JAX looks for the cluster that started this one."""

    coordinator: str | None = None
    processes: int | None = None
    process: int | None = None

    @property
    def is_given(self) -> bool:
        """True for an address that nobody has to look for, of several processes."""
        return self.coordinator is not None and self.processes != 1

    @property
    def words(self) -> tuple[str, ...]:
        """The three as words of a command line, "" for each that is missing."""
        given = (self.coordinator, self.processes, self.process)
        return tuple("" if word is None else str(word) for word in given)


DETECTED = JobAddress()
MAX_PORT = 2**16 - 1


def job_address(coordinator: str | None, processes: int | None, process: int | None) -> JobAddress:
    """The address from a user's words. Raises `QuestionError` for one that cannot be."""
    given = {"--coordinator": coordinator, "--processes": processes, "--process": process}
    missing = [option for option, value in given.items() if value is None]
    if len(missing) == len(given):
        return DETECTED
    if coordinator is None or processes is None or process is None:
        raise QuestionError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: a job has an address, "
            "a number of processes and the number of this one",
            "write --coordinator node-a:1234 --processes 4 --process 0, with 1, 2 and 3 in the others",
        )
    host, colon, port = coordinator.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT):
        problem = f"--coordinator {quote(coordinator)} is not HOST:PORT"
        raise QuestionError(problem, "write the host of process 0 and a free port of it: node-a:1234")
    if process >= processes:
        problem = f"--process {process:,} does not exist: the {processes:,} processes are numbered from 0"
        raise QuestionError(problem, f"write a number from 0 to {processes - 1:,}")
    return JobAddress(coordinator, processes, process)


@dataclass(frozen=True)
class Job:
    """A job as one of its processes sees it, or a process that runs alone. `process` is the own number, from
    0. `hosts` has each process's host, and `process_of` each device's process, as `jax.devices()` goes."""

    process: int
    processes: int
    hosts: tuple[str, ...]
    process_of: tuple[int, ...]

    @property
    def is_first(self) -> bool:
        """True in the process that answers for all."""
        return self.process == 0

    @property
    def devices_per_host(self) -> int:
        """The devices of each host, one host after the other; 0 where hosts differ or take turns."""
        hosts = [self.hosts[process] for process in self.process_of]
        per_host = len(hosts) // len(set(hosts))
        blocks = [set(hosts[first : first + per_host]) for first in range(0, len(hosts), per_host)]
        return per_host if len(blocks) == len(set(hosts)) and all(len(block) == 1 for block in blocks) else 0

    def runs(self, mesh: Mesh) -> bool:
        """Return whether it is a job of several processes, whose devices are those of a mesh."""
        return self.processes > 1 and mesh.size == len(self.process_of)

    def devices_of(self, process: int) -> tuple[int, ...]:
        return tuple(device for device, holder in enumerate(self.process_of) if holder == process)

    def holder(self, mesh: Mesh, position: int) -> int:
        """The process of the device at a position of a mesh."""
        return self.process_of[mesh.device_id(position)]


@dataclass(frozen=True)
class GroupSpan:
    """The groups of devices along `axes` of a mesh, as mesh positions, and how far apart their devices are:
    `hosts` has the names for a group that crosses hosts, and is empty for another one; `within_process`
    counts those that lie in one process."""

    axes: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    within_process: int
    hosts: tuple[tuple[str, ...], ...]

    @property
    def across_hosts(self) -> int:
        return sum(1 for hosts in self.hosts if hosts)

    @property
    def across_processes(self) -> int:
        """The number of groups that cross processes of one host."""
        return len(self.groups) - self.within_process - self.across_hosts


def group_span(job: Job, mesh: Mesh, axes: Sequence[str]) -> GroupSpan:
    """The groups along some axes of a mesh that takes all devices of a job."""
    groups = mesh.groups(tuple(axes))
    within, crossed = 0, []
    for group in groups:
        processes = {job.holder(mesh, position) for position in group}
        hosts = tuple(dict.fromkeys(job.hosts[process] for process in sorted(processes)))
        within += len(processes) == 1
        crossed.append(hosts if len(hosts) > 1 else ())
    return GroupSpan(tuple(axes), groups, within, tuple(crossed))
