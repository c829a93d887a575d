"""The compilers of one command: started while it reads its question, asked together, answered in order."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from shardviz.cli.output import print_error, print_errors_alone, print_note, wait_for, working
from shardviz.cli.process import ExitCode, end_all, on_signal
from shardviz.errors import CompilerError, JobLost, ShardvizError, TargetError, quote
from shardviz.lazy_names import LazyImports
from shardviz.targets import Target, check_axis_types, check_mesh, parse_targets

with LazyImports():
    from shardviz.answers import requests
    from shardviz.compiler import user_file, worker as workers
    from shardviz.reports import program_report, target_result, verdicts

if TYPE_CHECKING:
    from shardviz.compiler import CompilerRequest, Worker
    from shardviz.devices.job import Job, JobAddress
    from shardviz.hardware.machine import Machine
    from shardviz.planner.problem import Problem
    from shardviz.reports.lowered_module import ProgramChange, ShardingRefusal
    from shardviz.sharding import Mesh


READER = "shardviz.reader"
LOADING_S = 300.0
"""A process that reads a program has no more seconds, most of them to load JAX."""


def join_job(worker: Worker, question: str = "") -> Job:
    """Wait, before a line is printed, until all processes are there; all must have the same `question`."""
    job = wait_for(worker.job(question), "real")
    if not job.is_first:
        print_errors_alone()
    return job


def end_with_job(lost: JobLost) -> None:
    """End this process where another one is lost; process 0 goes on: it may have results to keep."""
    if lost.process == 0:
        return
    if not lost.is_told:
        print_error(lost.message, lost.hint)
    end_all(ExitCode.COMPILER)


def started_worker(timeout: float, *targets: Target, job: JobAddress | None = None) -> Worker:
    """A worker whose compilers for `targets` load from now on; `timeout` is in seconds a target."""
    worker = workers.Worker(timeout, job, end_with_job)
    on_signal(worker.kill)
    worker.start(*targets)
    return worker


def binary_text(data: bytes, where: str) -> str:
    """The text of a program that was saved in binary. Raises `QuestionError` for anything else."""
    ctx = click.get_current_context()
    worker: Worker | None = ctx.meta.get(READER)
    if worker is None:  # one reads all files of a command
        worker = ctx.meta[READER] = ctx.with_resource(started_worker(LOADING_S))
    return wait_for(worker.program_text(data, where), "the program's text")


class WorkerSession(ExitStack[None]):
    """A context that ends the compilers' processes for its targets; `exit_code` is that of the answers so
    far, and `job` that of the real devices, once it is joined."""

    def __init__(self, timeout: float, *targets: Target, job: JobAddress | None = None) -> None:
        super().__init__()
        self.exit_code = ExitCode.FINE
        self._worker = self.enter_context(started_worker(timeout, *targets, job=job)) if targets else None
        self._has_job = job is not None and any(target.name == "real" for target in targets)
        self.job: Job | None = None

    def join(self) -> None:
        """Join the job of the real devices, if they are asked, before anything is printed."""
        if self._has_job and self._worker is not None:
            self.job = join_job(self._worker)

    def note(self, answer: target_result.TargetResult) -> None:
        if answer.status == "error":
            self.exit_code = ExitCode.COMPILER
        elif answer.status == "unavailable":
            self.exit_code = max(self.exit_code, ExitCode.QUESTION)
        if answer.status != "ok" and not sys.stdout.isatty():
            # Who redirected stdout reads it here as well.
            is_named = answer.target in answer.error.split()
            print_error(f"{'' if is_named else f'{answer.target}: '}{answer.error}", answer.hint)


class ProgramSession(WorkerSession):
    """Questions to `targets` about programs of the user's; `timeout` is in seconds a target."""

    def __init__(self, targets: Sequence[Target], timeout: float) -> None:
        super().__init__(timeout, *targets)
        self._targets, self._timeout = targets, timeout
        self._requests = requests.TargetRequests(program_report.without_program, wait_for)

    def run_file(
        self, file: str, name: str, mesh: Mesh, axis_types: str, with_values: bool = False
    ) -> user_file.UserProgram:
        """Call a function of a file with a mesh in its own process, and run what it returns `with_values`."""
        platforms = tuple(dict.fromkeys(target.platform for target in self._targets))
        is_explicit = axis_types == "explicit"
        request = user_file.UserFileRequest(file, name, mesh, platforms, is_explicit, with_values=with_values)
        process = user_file.UserFileProcess(request, os.environ)
        on_signal(process.kill)
        with working(f"running {file}"):
            return process.result(self._timeout)

    def read_module(self, data: bytes, name: str) -> user_file.UserProgram:
        """A StableHLO module, or what jax.export made of one, for every target. Raises `QuestionError`."""
        assert self._worker is not None
        module = wait_for(self._worker.lowered(data, quote(name)), name)
        return user_file.UserProgram({target.platform: module for target in self._targets})

    def ask(
        self,
        program: user_file.UserProgram,
        options: Mapping[str, str],
        with_costs: bool = False,
        targets: Sequence[Target] | None = None,
    ) -> None:
        """Send the program to every target, or to these; what one cannot have is its answer."""
        worker = self._worker
        assert worker is not None

        def submit(target: Target) -> CompilerRequest[program_report.TargetProgram]:
            return worker.compile(program.lowered_for(target.platform), target, options, with_costs)

        self._requests.ask(
            self._targets if targets is None else targets,
            submit,
            lambda error: error if isinstance(error, ShardvizError) else None,
        )

    def programs(self) -> Iterator[program_report.TargetProgram]:
        """The answers in the order of the targets, which `exit_code` remembers."""
        for compiled in self.answers():
            self.note(compiled.answer)
            yield compiled

    def answers(self) -> Iterator[program_report.TargetProgram]:
        """The answers in the order of the questions; where there is no program, the reason is."""
        return self._requests.answers()

    def price(self, refusal: ShardingRefusal, options: Mapping[str, str]) -> None:
        """Have the first target compile the changes that JAX accepts: the fastest is then first, and in the
        hint; without times, the one that sends least. Those that switch JAX's check off are last."""
        target = self._targets[0]
        for change in (accepted := [one for one in refusal.changes if one.lowered]):
            assert change.lowered is not None
            self.ask(user_file.UserProgram({target.platform: change.lowered}), options, targets=[target])
        priced = {}
        for change, program in zip(accepted, self.answers(), strict=True):
            if program.module is not None:
                told, memory = program.times().times, program.memory
                priced[change] = replace(
                    change,
                    sent_bytes=program.bytes_sent,
                    seconds=None if told is None else told.model.seconds,
                    peak_bytes=None if memory is None else memory.peak_bytes,
                )
        first = sorted(
            priced.values(), key=lambda one: (one.is_unchecked, one.seconds or 0.0, one.sent_bytes)
        )
        if first:
            refusal.target, refusal.hint = target.name, f"JAX accepts {first[0].code}"
            refusal.hint += f" ({first[0].note})" * bool(first[0].note)
            like = sum(one.is_unchecked == first[0].is_unchecked for one in first)
            refusal.hint += f", the cheapest of {like} on {target.name}" * (like > 1)
        refusal.changes = (*first, *(one for one in refusal.changes if one not in priced))

    def verdicts(
        self, compiled: program_report.TargetProgram, machine: Machine | None = None
    ) -> tuple[verdicts.WasteVerdict, ...]:
        """The wastes of a program with their mends, tried on Shardy and its target."""
        lowered, worker = compiled.lowered, self._worker
        assert worker is not None

        def ask(name: str, changes: Sequence[ProgramChange]) -> program_report.TargetProgram:
            (target,) = parse_targets(name)
            options = compiled.options if name == compiled.target else {}
            assert lowered is not None
            try:
                return wait_for(worker.compile(lowered, target, options, changes=changes), name)
            except CompilerError as error:
                return program_report.without_program(name, error)

        return verdicts.verdicts(ask, compiled, machine)


class TargetSession(WorkerSession):
    """Questions to targets about one problem. `timeout` is in seconds a target. `may_drop`: the user did not
    choose the targets, so one that cannot hold the mesh is left out with a note."""

    def __init__(
        self, targets: Sequence[Target], timeout: float, may_drop: bool, job: JobAddress | None = None
    ) -> None:
        super().__init__(timeout, *targets, job=job)
        self._targets, self._may_drop = targets, may_drop
        self._requests = requests.TargetRequests(target_result.without_answer, wait_for)

    def ask(self, problem: Problem, with_costs: bool = False) -> None:
        """Send the problem to every target. Raises `TargetError` where a chosen one cannot take it."""
        worker = self._worker
        if worker is None:
            return

        check_axis_types(problem)
        self.join()
        asked = []  # all are checked before one is sent
        for target in self._targets:
            try:
                check_mesh(target, problem.mesh)
                asked.append(target)
            except TargetError as error:
                if not self._may_drop:
                    raise
                print_note(f"{target.name} is skipped: {error.message}")
        self._requests.ask(asked, lambda target: worker.submit(problem, target, with_costs=with_costs))

    @property
    def requested(self) -> list[str]:
        return self._requests.names

    @property
    def has_hardware(self) -> bool:
        """True where a target that was asked is hardware with a name, not simulated devices."""
        return any(target.machine is not None for target in self._targets if target.name in self.requested)

    def answers(self) -> Iterator[target_result.TargetResult]:
        """The answers in the order of the targets, each as soon as it and those before it are ready. Where a
        compiler failed, the reason is in its answer, and `exit_code` remembers it."""
        for result in self._requests.answers():
            self.note(result)
            yield result
