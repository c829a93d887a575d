"""A user's function under combinations of values: each is lowered and compiled for one target, side by side.
What is compiled for hardware that is not here stays on disk: asked again, it is read from there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, TypeVar

from shardviz.compiler.user_file import UserFileProcess, UserFileRequest, UserProgram
from shardviz.compiler.worker import Worker
from shardviz.devices.found_hardware import free_bytes, peak_bytes
from shardviz.errors import QuestionError, ShardvizError, plural, quote
from shardviz.hardware.machine import Machine
from shardviz.reports import trials
from shardviz.reports.program_report import without_program
from shardviz.targets import Target

Task = TypeVar("Task")
Result = TypeVar("Result")


def compiled_trials(
    request: UserFileRequest,
    tries: Sequence[str],
    target: Target,
    options: Mapping[str, str],
    machine: Machine | None,
    time_limit: float,
    on_progress: Callable[[str], None],
    on_start: Callable[[Callable[[], None]], None],
) -> trials.TrialTable:
    """Call the function of a request with each combination of what `tries` name, and compile what it returns
    for a target, with `options` in all of them; each has `time_limit` seconds.

    `on_progress` is told how far it is, `on_start` what ends each process that is started. Raises what keeps
    all combinations alike from being lowered, and `QuestionError` for a libtpu that is not there."""
    every = trials.combinations(tries)
    libraries = {path: libtpu(path) for path in {one[trials.LIBTPU] for one in every if trials.LIBTPU in one}}

    def lower(keywords: dict[str, Any]) -> tuple[UserProgram | ShardvizError, int]:
        process = UserFileProcess(replace(request, keywords=tuple(keywords.items())), os.environ)
        on_start(process.kill)
        try:
            return process.result(time_limit), getrusage(RUSAGE_CHILDREN).ru_maxrss * 1024
        except ShardvizError as error:
            return error, 0

    calls = [*{repr(call): call for call in map(trials.keywords_of, every)}.values()]
    lowered: dict[str, UserProgram | ShardvizError] = {}
    for call, program in side_by_side(calls, lower):
        lowered[repr(call)] = program
        on_progress(f"lowered {len(lowered)} of {plural(len(calls), 'program')}")
    errors = [one for one in lowered.values() if isinstance(one, ShardvizError)]
    if len(errors) == len(lowered) and len({one.message for one in errors}) == 1:
        raise errors[0]

    def compiled(combination: trials.Combination) -> tuple[trials.Trial, int]:
        library = libraries.get(combination.get(trials.LIBTPU, ""))
        own = {} if library is None else {"TPU_LIBRARY_PATH": str(library)}
        with Worker(time_limit, environment=os.environ | own) as worker:
            on_start(worker.kill)
            try:
                if isinstance(program := lowered[repr(trials.keywords_of(combination))], ShardvizError):
                    raise program
                module = program.lowered_for(target.platform)
                answer = worker.compile(
                    module, target, {**options, **trials.options_of(combination)}
                ).result()
            except ShardvizError as error:
                answer = without_program(target.name, error)
            return trials.trial_of(combination, answer, answer.times(machine)), peak_bytes(worker.pids())

    results: list[trials.Trial] = []
    for _, trial in side_by_side(every, compiled):
        results.append(trial)
        on_progress(f"{target.name}: compiled {len(results)} of {plural(len(every), 'combination')}")
    return trials.TrialTable(request.function, target.name, trials.ranked(results))


def libtpu(path: str) -> Path:
    """The library in a virtual environment, or the library itself. Raises `QuestionError` for none."""
    named = Path(path).expanduser().absolute()
    root = named.parents[1] if named.parent.name == "bin" else named
    for library in (named, *root.glob("lib/python*/site-packages/libtpu/libtpu.so")):
        if library.name == "libtpu.so" and library.is_file():
            return library
    raise QuestionError(f"{quote(path)} has no libtpu", "name a virtual environment in which it is installed")


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
