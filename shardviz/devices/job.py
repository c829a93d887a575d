"""A job: processes, on one host or many, that run one program on the devices of all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JobAddress:
    """Where the processes of a job meet: `coordinator` is "host:port" of process 0, `processes` their number
    and `process` the own one, from 0. Without all of them JAX looks for the cluster that started this process.
    """

    coordinator: str | None = None
    processes: int | None = None
    process: int | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The three as words of a command line, "" for each that is missing."""
        given = (self.coordinator, self.processes, self.process)
        return tuple("" if each is None else str(each) for each in given)


DETECTED = JobAddress()


@dataclass(frozen=True)
class Job:
    """A job as one of its processes sees it; a process that runs alone is one too.

    `process` is the own number, from 0. `hosts` has the name of each process's host, and `process_of` the
    process of each device; devices are numbered as `jax.devices()` lists them.
    """

    process: int
    processes: int
    hosts: tuple[str, ...]
    process_of: tuple[int, ...]

    @property
    def is_first(self) -> bool:
        """True in the process that answers for all."""
        return self.process == 0

    def devices_of(self, process: int) -> tuple[int, ...]:
        """The devices of a process, by number."""
        return tuple(device for device, holder in enumerate(self.process_of) if holder == process)
