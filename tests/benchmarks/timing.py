"""Timing whole commands in turn, and calls inside this process, by their medians."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

RUNS = 7


def commands(*argvs: Sequence[str], runs: int = RUNS) -> list[float]:
    """Median wall seconds of each command, run in turn (A B A B …) after one warm-up, output thrown away."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    # As everywhere else: what is compiled once stays so.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    seconds: list[list[float]] = [[] for _ in argvs]
    for turn in range(runs + 1):
        for argv, taken in zip(argvs, seconds, strict=True):
            start = time.perf_counter()
            subprocess.run(
                argv, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            if turn:
                taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in seconds]


def call(function: Callable[[], object], runs: int = RUNS) -> float:
    """Median seconds of a call, after one warm-up."""
    function()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def shardviz(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "shardviz", *arguments]


def line(what: str, figure: str, budget: str) -> None:
    print(f"{what:<58} {figure:<34} budget {budget}", flush=True)
