"""`shardviz launch`: a command in several processes on this machine, as a cluster's launcher starts them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from signal import Signals
from tempfile import TemporaryFile

import click

from shardviz.cli import options
from shardviz.cli.group import COMMANDS, command_named, commands_with
from shardviz.cli.output import print_error
from shardviz.cli.process import SIGNALLED, ExitCode, first_interrupt, on_signal
from shardviz.errors import QuestionError, quote

MAX_PROCESSES = 64
END_S = 10.0
"""Processes that lost another one, or were interrupted, end within this time, or are killed."""
LOOK_S = 0.05


@options.command("launch")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [ARGS]")
def command(number: int, devices: int, words: tuple[str, ...]) -> int:
    """Run a command of shardviz in N processes on this machine, as one job.

    Process 0 prints; all end when one is lost. On a cluster, use srun or mpirun instead."""
    name, *rest = words
    able = commands_with("--coordinator")
    if name not in able:
        example = command_named("launch").examples[0][1]
        is_known = name in COMMANDS
        problem = f"{name} cannot run in several processes" if is_known else f"unknown command {quote(name)}"
        raise QuestionError(problem, f"launch runs {', '.join(able)}, as in {example}")
    for word in ("--coordinator", "--processes", "--process"):
        if word in rest:
            raise QuestionError(f"launch sets {word} itself", f"leave out {word}")
    command_named(name).make_context(f"shardviz {name}", rest)  # which raises for words of no such command
    job = _LaunchedJob(number, devices, words)
    on_signal(job.terminate)
    with first_interrupt() as interrupted:
        return job.wait(interrupted)


_PROCESS = """\
from shardviz.compiler.messages import end_with_parent
end_with_parent()
from shardviz.cli import main
main()
"""


class _LaunchedJob:
    """The processes. What those above 0 print on stderr is kept: they say the same."""

    def __init__(self, number: int, devices: int, words: tuple[str, ...]) -> None:
        from shardviz.compiler.child_process import simulated_environment

        with socket.create_server(("localhost", 0)) as unused:
            coordinator = f"localhost:{unused.getsockname()[1]}"
        environment = simulated_environment(os.environ) | {"JAX_NUM_CPU_DEVICES": str(devices)}
        job = ("--coordinator", coordinator, "--processes", str(number), "--process")
        self._said = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        others = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": self._said}
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-P", "-c", _PROCESS, *words, *job, str(process)],
                env=environment,
                **(others if process else {}),  # type: ignore[call-overload]
            )
            for process in range(number)
        ]

    def terminate(self) -> None:
        for process in self._processes:
            process.terminate()

    def wait(self, interrupted: Callable[[], int]) -> int:
        """Wait for all, and pass an interrupt on: the exit code of process 0, or of the first that failed."""
        end, lost, stopped = float("inf"), None, 0
        while self._running():
            lost = lost or self._first_that_failed()
            if not stopped and (stopped := interrupted()):
                for process in self._running():
                    process.send_signal(stopped - SIGNALLED)
            if lost is not None or stopped:
                end = min(end, time.monotonic() + END_S)
            if time.monotonic() > end:
                for process in self._running():
                    process.kill()
            time.sleep(LOOK_S)
        lost = lost or self._first_that_failed()
        if lost is None:
            return ExitCode.FINE
        first = self._processes[0].returncode
        if stopped:
            return first if first >= 0 else stopped
        if first <= 0:
            # Process 0 was not able to say it.
            self._said.seek(0)
            if said := "".join(dict.fromkeys(self._said)):
                sys.stderr.write(said)
            elif lost[1] < 0:
                number, code = lost
                print_error(
                    f"process {number} of {len(self._processes)} was killed by {Signals(-code).name}",
                    "the whole job has ended: start it again",
                )
        code = first or lost[1]
        return code if code >= 0 else ExitCode.COMPILER

    def _running(self) -> list[subprocess.Popen[bytes]]:
        return [process for process in self._processes if process.poll() is None]

    def _first_that_failed(self) -> tuple[int, int] | None:
        codes = enumerate(process.returncode for process in self._processes)
        return next(((number, code) for number, code in codes if code), None)
