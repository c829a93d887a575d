"""A command in several processes, a job: process 0 answers, and the others print nothing but errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.cli.output import print_error, print_errors_alone, wait_for
from shardviz.cli.process import ExitCode, end_all

if TYPE_CHECKING:
    from shardviz.compiler import Worker
    from shardviz.devices.job import Job
    from shardviz.errors import JobLost


def join_job(worker: Worker, question: str = "") -> Job:
    """Wait until all processes are there; to be called before the first line of an answer. All must have the
    same `question`."""
    job = wait_for(worker.job(question), "real")
    if not job.is_first:
        print_errors_alone()
    return job


def end_with_job(lost: JobLost) -> None:
    """End this process where another one is lost. Process 0 goes on, with the error for its answer: it may
    have results to keep."""
    if lost.process == 0:
        return
    if not lost.is_told:
        print_error(lost.message, lost.hint)
    end_all(ExitCode.COMPILER)
