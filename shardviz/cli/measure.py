"""`shardviz measure`: collectives and local work on devices, against the clock; a machine's file of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shardviz.cli import options
from shardviz.cli.output import TICK_S, CommandOutput, print_error, print_json, print_note, working
from shardviz.cli.process import ExitCode, first_interrupt
from shardviz.cli.target_session import join_job, started_worker
from shardviz.errors import CompilerError, QuestionError, plural, quote
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.targets import TARGETS, Target
from shardviz.units import human_bytes, rate, seconds
from shardviz.user_files import target_path, write_file

with LazyImports():
    from shardviz.devices import fitting, question as devices_question
    from shardviz.documents import machines
    from shardviz.hardware import machine as hardware_machine, machine_file
    from shardviz.render import lines as render_lines, measurements

if TYPE_CHECKING:
    from shardviz.compiler import CompilerRequest, Worker
    from shardviz.devices.job import Job, JobAddress
    from shardviz.devices.question import Case, Measurement, MeasureQuestion, NoMeasurement
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.sharding import Mesh

FIGURES = {"matmul": "arithmetic", "copy": "memory"}
"""The figures of a machine's file that an operation measures."""
LEAST_PASSES = 6
"""How often a case runs at least: to warm up, to find how often, and three times on the clock."""


@options.command("measure")
@click.argument("operations", default="all_gather,psum,psum_scatter,all_to_all,ppermute", metavar="[OP,…]")
def command(
    operations: str,
    mesh: str | None,
    axes: tuple[str, ...],
    sizes: str,
    dtype: str,
    runs: int,
    devices: int | None,
    machine: str | None,
    save: str | None,
    job: JobAddress,
    timeout: float,
    output: CommandOutput,
) -> int:
    """Measure collectives on JAX's devices: time, bandwidth and a fitted line.

    OP is all_gather, psum, psum_scatter, all_to_all or ppermute, or matmul or copy, which each device runs
    alone; several are separated by commas."""
    # Refused before JAX loads.
    path = None if save is None else target_path(save)
    if path is not None and path.suffix != ".toml":
        raise QuestionError(f"{quote(str(save))} does not end in .toml", "write -o my-cluster.toml")
    devices_question.parse_operations(operations)
    devices_question.parse_sizes(sizes)
    if devices is not None and job.is_given:
        problem = "--devices simulates devices in one process, so it does not apply to a job"
        hint = "leave it out, or simulate them with launch: shardviz launch -n 2 --devices 4 -- measure psum"
        raise QuestionError(problem, hint)
    target = TARGETS["real" if devices is None else "cpu"]
    with started_worker(timeout, target, job=job) as worker:
        asked = repr((operations, mesh, axes, sizes, dtype, runs, timeout))
        joined = join_job(worker, asked) if devices is None else None
        measured_mesh = _mesh(mesh, joined, devices)
        question = devices_question.measure_question(operations, measured_mesh, axes, sizes, dtype, runs)
        if path is not None and (joined is None or joined.is_first):
            if not os.access(path.resolve().parent, os.W_OK):
                raise QuestionError(f"cannot write {quote(str(path))}", "choose a file in a writable folder")
            if joined is not None and not joined.devices_per_host:
                problem = "-o needs hosts with equally many devices, in order of the hosts"
                raise QuestionError(problem, "start as many processes on each host, or leave out -o")
        on = None if machine is None else machine_file.named_machine(machine)
        placed = None if on is None else hardware_machine.place_mesh(on, question.mesh)
        session = _Session(question, placed, joined, timeout)
        with first_interrupt() as interrupted:
            code = session.measure(worker, target, _printer(session, output), interrupted)
            if session.is_first:
                # Before it waits for the others: who interrupts a job may not leave it much time.
                code = _conclude(session, code, path, output)
        if session.is_partial:
            failure = session.failure
            worker.close("was interrupted" if failure is None else f"has failed: {failure.message}")
    return code


def _conclude(session: _Session, code: int, path: Path | None, output: CommandOutput) -> int:
    """Save and print the end of an answer; say why it is not complete, or wrong; the exit code."""
    words, unsaved = "", None
    if path is not None and session.rows:
        # Before anything is printed, as the terminal may be gone.
        try:
            words = _save(path, session, session.is_partial)
        except QuestionError as error:
            unsaved = error
    if output.as_json:
        given = session.question, session.rows, session.fits, session.placed
        print_json(machines.measure_document(*given, session.is_partial, session.job))
    elif session.rows:
        output.show([])
        for sentence in measurements.rows_words(session.rows):
            _show(sentence, output)
        output.show(measurements.fits_view(session.fits, session.question.mesh, *output.page))
        if few := measurements.too_few_sizes(fitting.of_one_size(session.rows)):
            output.show(render_lines.sentence(few, output.width))
    if words and output.as_json:
        print_note(words)
    elif words:
        _show(words, output)
    if session.failure is not None:
        print_error(session.failure.message, session.failure.hint)
    elif code:
        rows = plural(len(session.question.cases), "row")
        print_note(f"interrupted after {len(session.rows):,} of {rows}: not complete")
    elif any(row.wrong for row in session.rows):
        print_error("some results are wrong: see #wrong", "report it to the maintainers of these devices")
        code = ExitCode.CHECK_FAILED
    elif not session.rows:
        print_error("nothing was measured: all sizes are too large", "use smaller sizes")
        code = ExitCode.QUESTION
    if unsaved is not None:
        raise unsaved
    return code


class _Session:
    """The rows of a question as they come, until there is an interrupt or a compiler fails."""

    def __init__(
        self, question: MeasureQuestion, placed: PlacedMesh | None, job: Job | None, timeout: float
    ) -> None:
        self.question, self.placed, self.job = question, placed, job
        self.rows: list[Measurement] = []
        self.is_partial = False
        self.failure: CompilerError | None = None
        self._timeout = timeout

    @property
    def is_first(self) -> bool:
        """This process answers for all of its job."""
        return self.job is None or self.job.is_first

    @property
    def fits(self) -> tuple[fitting.TimeFit, ...]:
        return fitting.fits(self.rows)

    def measure(
        self,
        worker: Worker,
        target: Target,
        show: Callable[[Measurement], None],
        interrupted: Callable[[], int],
    ) -> int:
        """Measure all cases; return the exit code. Raises `ShardvizError` where there is not even one row."""
        try:
            for row in self._measured(worker, target, interrupted):
                self.rows.append(row)
                show(row)
        except CompilerError as error:
            if not self.rows:
                raise
            self.failure, self.is_partial = error, True
        return interrupted() or ExitCode.COMPILER if self.is_partial else ExitCode.FINE

    def _measured(
        self, worker: Worker, target: Target, interrupted: Callable[[], int]
    ) -> Iterator[devices_question.Measurement]:
        left_out: set[tuple[str, tuple[str, ...]]] = set()
        for number, case in enumerate(self.question.cases, 1):
            if case.group in left_out:
                continue
            if reason := self._too_long(case):
                left_out.add(case.group)
                print_note(reason)
                continue
            pending = worker.measure(case, self.question.mesh, target, self.question.runs)
            over = f" over {' and '.join(case.axes)}" if case.axes else ""
            words = f"{number} of {len(self.question.cases)}: {case.op}{over}, {human_bytes(case.size)}"
            outcome = _awaited(pending, words, interrupted)
            if outcome is None:
                pending.cancel()
                self.is_partial = True
                return
            if isinstance(outcome, devices_question.Measurement):
                yield outcome
            else:
                left_out.add(case.group)
                print_note(f"{outcome.reason}: skipped, with all larger sizes")

    def _too_long(self, case: Case) -> str:
        """The reason why a case is left out that would not end in time, by the size before it; or ""."""
        last = self.rows[-1] if self.rows else None
        if last is None or last.case.group != case.group:
            return ""
        more = case.flops / last.case.flops if case.flops else case.size / last.case.size
        expected = LEAST_PASSES * last.median * more
        if expected <= self._timeout:
            return ""
        words = f"it would take {seconds(expected)}, and --timeout is {self._timeout:g} s"
        return f"{case.op} of {human_bytes(case.size)} and larger sizes are skipped: {words}"


def _awaited(
    pending: CompilerRequest[Measurement | NoMeasurement], words: str, interrupted: Callable[[], int]
) -> Measurement | NoMeasurement | None:
    """The end of a request; None for an interrupt."""
    with working(lambda: f"{words}: {pending.stage or 'waiting'}"):
        while not interrupted():
            with suppress(TimeoutError):
                return pending.result(TICK_S)
    return None


def _mesh(text: str | None, job: Job | None, simulated: int | None) -> Mesh:
    devices = len(job.process_of) if job is not None else simulated or 1
    mesh = parse_mesh(f"X={devices}" if text is None else text)
    # Of several processes all must take part: theirs refuse another mesh.
    if mesh.size > devices and (job is None or job.processes == 1):
        there = "there is 1" if devices == 1 else f"there are {devices:,}"
        hint = f"simulate them on the CPU with --devices {mesh.size}, or take a smaller mesh"
        raise QuestionError(f"the mesh {mesh} has {mesh.size:,} devices, and {there}", hint)
    return mesh


def _printer(session: _Session, output: CommandOutput) -> Callable[[Measurement], None]:
    question = session.question
    if output.as_json:
        return lambda _row: None
    table = measurements.MeasuredRows(question, session.placed, *output.page)
    if session.job is not None:
        lines = measurements.job_lines(session.job, question.mesh, question.groups, *output.page)
        if lines:
            output.show(lines[:-1])

    def show(row: Measurement) -> None:
        before = session.rows[-2].case.group if session.rows[1:] else None
        if before != row.case.group:
            output.show(table.heading(row.case))
        output.show(table.row(row))

    return show


def _show(words: str, output: CommandOutput) -> None:
    output.show(render_lines.sentence(words, output.width, style="dim"))


def _save(path: Path, session: _Session, is_partial: bool) -> str:
    question, device = session.question, session.rows[0].device
    count, job = question.mesh.size, session.job
    node = count if job is None or job.processes == 1 else job.devices_per_host
    base = fitting.bare_machine(device, count, node) if session.placed is None else session.placed.machine
    source = f"measured on {date.today()} on {plural(count, 'device')}, {device}"
    machine = fitting.measured_machine(base, question, session.fits, path.stem, source)
    comment = "written by shardviz measure"
    if is_partial:
        comment += f"\nnot complete: {len(session.rows)} of {plural(len(question.cases), 'row')}"
    words = [f"Wrote {path}; use it with --machine {path}."]
    guessed = fitting.links_not_measured(base, question, session.fits) if session.placed is None else {}
    for links, spec in guessed.items():
        where = "between hosts" if links == "network" else "between the devices of a host"
        guess = f"No bandwidth {where} was measured: {rate(spec.bandwidth)} is a guess"
        comment += f"\n{guess}"
        words.append(f"{guess}.")
    measured = {"matmul": machine.device.peak, "copy": machine.device.hbm_bandwidth}
    if lacking := [op for op, value in measured.items() if not value]:
        figures = " and ".join(FIGURES[op] for op in lacking)
        words.append(f"It has no figures for {figures} until you also measure {','.join(lacking)}.")
    write_file(path, machine_file.machine_toml(machine, comment))
    return " ".join(words)
