"""The hardware at hand: the machine that devices of JAX are, and what this host's memory has room for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from shardviz.hardware.chips import CHIPS, TpuChip, nodes_name, slices_name
from shardviz.hardware.clusters import cluster_named
from shardviz.hardware.family import Family
from shardviz.hardware.machine import Machine
from shardviz.hardware.placement import DeviceCoords, Placement

Task = TypeVar("Task")
Result = TypeVar("Result")


def slice_of(device: Any) -> int:
    """The number of a device's TPU slice; 0 where there is one alone."""
    index: int = getattr(device, "slice_index", 0)
    return index


def machine_of(devices: Sequence[Any]) -> Machine | None:
    """The machine whose devices these are, all of them; None for CPUs, other chips, and a part of a slice."""
    chip = next((chip for chip in CHIPS.values() if chip.device_kind == devices[0].device_kind), None)
    if chip is None:
        return None
    if isinstance(chip, TpuChip):
        torus = [len({device.coords[axis] for device in devices}) for axis in range(chip.rank)]
        name = slices_name(chip.name, torus, len({*map(slice_of, devices)}))
    else:
        nodes = len({device.process_index for device in devices})
        name = nodes_name(chip.name, nodes, len(devices) // nodes)
    machine = cluster_named(name)
    return machine if machine is not None and machine.devices == len(devices) else None


def found_placement(family: Family, placed: Sequence[Any]) -> Placement:
    """The place of the device at each mesh position: its id, the coordinates of its chip, its core and its
    slice; of a GPU its number in the node, and the node."""
    # On several slices the ids leave gaps.
    devices = sorted(placed, key=lambda device: (slice_of(device), device.id))
    ids = {device: id_ for id_, device in enumerate(devices)}
    first_of_node: dict[int, int] = {}
    for id_, device in enumerate(devices):
        first_of_node.setdefault(device.process_index, id_)
    # JAX gives every chip of a TPU three coordinates.
    rank = len(family.torus_sizes)
    places = tuple(
        DeviceCoords(tuple(device.coords)[:rank], device.core_on_chip, slice_of(device))
        if device.platform == "tpu"
        else DeviceCoords((), ids[device] - first_of_node[device.process_index], device.process_index)
        for device in placed
    )
    return family.placement(tuple(ids[device] for device in placed), places)


def free_bytes() -> int:
    """Bytes that Linux can still give, at most up to its limit for this process's group; `2**62` where it
    tells neither, as other systems do."""
    available = [2**62]
    with suppress(OSError, KeyError, ValueError):
        available.append(_field("meminfo", "MemAvailable"))
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())  # "max" without one
        available.append(limit - int((group / "memory.current").read_text()))
    return max(0, min(available))


def peak_bytes(pids: Iterable[int]) -> int:
    """The most bytes that one of some processes has held; 0 where nobody tells."""
    with suppress(OSError, KeyError, ValueError):
        return max(_field(f"{pid}/status", "VmHWM") for pid in pids)
    return 0


def side_by_side(
    tasks: Sequence[Task], do: Callable[[Task], tuple[Result, int]]
) -> Iterator[tuple[Task, Result]]:
    """Each task with its result, as it ends. `do` is called in threads, and returns the result and the bytes
    that its process has held at most, 0 where that is not known.

    The first runs alone: what it holds tells how many more the memory that is free has room for. Where
    nobody knows that, all run one after the other."""
    waiting, most, cores = [*reversed(tasks)], 0, os.cpu_count() or 1
    running: dict[Future[tuple[Result, int]], Task] = {}
    with ThreadPoolExecutor(cores) as pool:
        while waiting or running:
            # Those that run may still grow to what others have held.
            while waiting and (
                not running or (most and len(running) < cores and free_bytes() >= most * (len(running) + 1))
            ):
                task = waiting.pop()
                running[pool.submit(do, task)] = task
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                result, held = future.result()
                most = max(most, held)
                yield running.pop(future), result


def _field(file: str, name: str) -> int:
    """A figure of a file of ``/proc``, which has it in KiB."""
    fields = dict(line.split(":", 1) for line in (Path("/proc") / file).read_text().splitlines())
    return int(fields[name].split()[0]) * 1024
