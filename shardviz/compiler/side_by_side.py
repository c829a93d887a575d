"""Tasks with processes of their own, as many at once as the machine has cores and memory for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from shardviz.devices.host_memory import free_bytes

Task = TypeVar("Task")
Result = TypeVar("Result")


def side_by_side(
    tasks: Sequence[Task], do: Callable[[Task], tuple[Result, int]]
) -> Iterator[tuple[Task, Result]]:
    """Each task with its result, as it ends. `do` is called in threads, and returns the result and the bytes
    that its process has held at most, 0 where that is not known.

    The first runs alone: what it holds tells how many more the memory that is free has room for. Where
    nobody knows that, all run one after the other.
    """
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
