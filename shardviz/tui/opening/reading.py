"""The contents of a file to show: read in a thread, since a program or a profile may take seconds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.answers.programs import (
    ProgramAnswer,
    ProgramQuestion,
    diff,
    modules_summary,
    summary_of,
)
from shardviz.compiler.requests import Cancelled
from shardviz.compiler.user_file import UserFileProcess, UserFileRequest, find_function
from shardviz.documents.summaries import load_summary
from shardviz.errors import CompilerError, QuestionError, TargetError, quote
from shardviz.hardware.machine import assumed_machine
from shardviz.hardware.machine_file import named_machine
from shardviz.hlo.dump_files import final_programs
from shardviz.hlo.text_file import HOW, read_text_file
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.render.programs.program_pages import ListedProgram, read_program
from shardviz.reports.program_report import DumpedModule, ProgramReport, read_dumped
from shardviz.reports.rematerialization import Rematerialization
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Mesh
from shardviz.targets import check_mesh, parse_targets
from shardviz.tui.opening.kinds import Openable, ReadingOptions, diff_of, read_options
from shardviz.tui.time.timelines import OpenedProfile
from shardviz.units import human_bytes

with LazyImports():
    from shardviz.answers import profile as profile_answer
    from shardviz.profiles import trace_files

if TYPE_CHECKING:
    from shardviz.compiler import Worker
    from shardviz.hardware.machine import Machine
    from shardviz.reports.changes import ReportChanges, ReportSummary
    from shardviz.reports.program_report import TimesAnswer
    from shardviz.reports.target_program import TargetProgram
    from shardviz.tui.state import EditorState

PATIENCE_S = 120.0
"""Seconds for XLA to write the text of a profile's programs, and for a file of the user's to run."""
PIECE = 2**22
"""Characters of a text that are searched at once."""
OF_PROGRAM = ("mesh", "device_order", "machine")
OF_FUNCTION = ("mesh", "target", "machine")
OF_PROFILE = ("mesh", "device_order", "machine", "hlo", "step", "device")
"""The options of each kind."""


class ReadingProgress:
    """Something that is being read in a thread, which tells here how far it is."""

    def __init__(self, show: Callable[[Text], object]) -> None:
        self.is_stopped = False
        self._show = show
        self._ends: list[Callable[[], object]] = []

    def say(self, words: str) -> None:
        """Show what is being done. Raises `Cancelled` where nobody waits for it any more."""
        if self.is_stopped:
            raise Cancelled("the reading was stopped")
        self._show(Text(f"{words} …", "dim"))

    def say_bytes(self, name: str, done: int, size: int) -> None:
        """``reading traces: 12 MiB of 40 MiB …``; otherwise as `say`."""
        self.say(f"reading {name}: {human_bytes(done)} of {human_bytes(size)}")

    def end_by(self, end: Callable[[], object]) -> None:
        """Have `stop` call this too: it ends a process, or a request."""
        self._ends.append(end)
        if self.is_stopped:
            end()

    def stop(self) -> None:
        """Nobody waits for it any more."""
        self.is_stopped = True
        for end in self._ends:
            end()


@dataclass(frozen=True)
class Defaults:
    """The problem's own, where nothing else is named: its mesh and target are for functions, its `machine`
    prices programs. `named_machine` is that of its field alone; empty where there is none."""

    mesh: str
    target: str
    machine: str
    named_machine: str
    is_explicit: bool
    worker: Worker


def defaults_of(state: EditorState) -> Defaults:
    """The defaults of the problem on screen. A function is compiled for the first hardware among the targets,
    else for simulated CPUs."""
    now = state.resolved
    hardware = (each.name for each in now.targets if each.machine is not None)
    named = now.shown.machine if now.named is not None else ""
    machine = named or ("" if now.machine.assumed else now.machine.name)
    is_explicit = now.shown.axis_types == "explicit"
    mesh = str(now.problem.mesh)
    return Defaults(mesh, next(hardware, "cpu"), machine, named, is_explicit, state.queries.worker)


@dataclass(frozen=True)
class OpenedProgram:
    """A program of a file, with the `options` that it was read with.

    Of a text there are its report and its lines; of a log alone what it says was made whole, and neither; of
    a function also what the target has answered, and of a report that was saved only that.
    """

    found: Openable
    options: ReadingOptions
    notes: tuple[str, ...] = ()
    mesh: Mesh | None = None
    report: ProgramReport | None = None
    listed: ListedProgram | None = field(default=None, compare=False)
    remade: tuple[Rematerialization, ...] = ()
    compiled: TargetProgram | None = None
    told: TimesAnswer | None = None
    saved: ReportSummary | None = None

    def command(self, *views: str) -> str:
        """The command line that prints the same."""
        name = "program" if self.found.kind == "function" else "hlo"
        return shlex.join(["shardviz", name, self.found.path, *self.options.words, *views])


@dataclass(frozen=True)
class OpenedModules:
    """The final programs of a folder of dumps."""

    found: Openable
    options: ReadingOptions
    modules: tuple[DumpedModule, ...]


@dataclass(frozen=True)
class OpenedChanges:
    """The changes from the old program of `found` to the new one, and the command line that prints them."""

    found: Openable
    changes: ReportChanges
    notes: tuple[str, ...]
    command: str


Opened = Openable | OpenedProgram | OpenedModules | OpenedChanges | OpenedProfile
"""What was opened: read, or chosen where nothing has to be read for it."""


def open_file(found: Openable, defaults: Defaults, reading: ReadingProgress) -> Opened:
    """Read a file, a folder, a function or two programs. Raises what their readers raise, and `QuestionError`
    for options that they do not have."""
    if found.kind == "modules":
        return open_modules(found, defaults)
    if found.kind == "profile":
        return _profile(found, defaults, reading)
    if found.kind == "diff":
        return open_changes(found, defaults, reading)
    if found.kind == "function":
        return _function(found, defaults, reading)
    if found.kind == "saved":
        return OpenedProgram(found, read_options(found.options, ()), saved=load_summary(Path(found.path)))
    return open_program(found, defaults, reading)


def open_program(found: Openable, defaults: Defaults, reading: ReadingProgress) -> OpenedProgram:
    """A file of HLO, StableHLO or Shardy text, or of a log; HLO is priced on a machine.

    Raises `QuestionError` for a file without any of that, and for a program that the machine cannot run. Only
    one that is named has to.
    """
    options = read_options(found.options, OF_PROGRAM)
    given = _mesh(options)
    file = read_text_file(found.path)
    question = ProgramQuestion(file.text, given, partial(_has, reading=reading))
    name = Path(found.path).name
    if question.language == "hlo":
        reading.say(f"reading the collectives of {name}")
        answer, options = _priced(question, options, defaults)
    else:
        # The error about a text that is none of these needs no more than its beginning.
        is_read = question.language or question.is_log_alone
        answer = (question if is_read else ProgramQuestion(file.text[:PIECE], given)).answer()
    if answer.report is None:
        return OpenedProgram(found, options, file.notes, answer.mesh, remade=answer.remade)
    module = answer.report.module
    if module.unread_collectives and not module.collectives:
        raise QuestionError(module.unread[0], HOW)
    listed = None
    if module.mesh is not None:
        reading.say(f"reading the lines of {name}")
        result = TargetResult(name, "ok", tuple(module.collectives), text=question.text)
        listed = read_program(result, module.mesh)
    notes = (*file.notes, *module.unread)
    return OpenedProgram(found, options, notes, module.mesh, answer.report, listed, answer.remade)


def _mesh(options: ReadingOptions) -> Mesh | None:
    """The mesh that is named, in the order that is named; None where none is."""
    if options.mesh:
        return parse_mesh(options.mesh, options.device_order or None)
    if options.device_order:
        raise QuestionError("--device-order is the order of a mesh's devices", "add --mesh X=2,Y=4")
    return None


def _has(text: str, check: Callable[[str], bool], reading: ReadingProgress) -> bool:
    """Return whether a check finds something in a text. It looks at pieces of whole lines: the screen waits
    for each search, and between two a reading may be stopped."""
    start = 0
    while start < len(text):
        reading.say("looking for a program")
        end = text.find("\n", start + PIECE) + 1 or len(text)
        if check(text[start:end]):
            return True
        start = end
    return False


def _priced(
    question: ProgramQuestion, options: ReadingOptions, defaults: Defaults
) -> tuple[ProgramAnswer, ReadingOptions]:
    """The answer with seconds, and the options with the machine of these."""
    if options.machine:
        return question.answer(named_machine(options.machine)), options
    if defaults.machine:
        try:
            answer = question.answer(named_machine(defaults.machine))
        except QuestionError:
            # The problem's machine is not for this program.
            pass
        else:
            return answer, replace(options, machine=defaults.machine)
    return question.answer(assumed_machine()), options


def open_modules(found: Openable, defaults: Defaults) -> OpenedModules:
    """A folder of dumps. Raises `QuestionError` where it has the final program of no module."""
    options = read_options(found.options, OF_PROGRAM)
    given = _mesh(options)
    machine = options.machine or defaults.machine
    on = named_machine(machine) if machine else assumed_machine()
    files = final_programs(Path(found.path))
    modules = (read_dumped(each, read_text_file(each.path).text, given, on) for each in files)
    return OpenedModules(found, options, tuple(modules))


def _function(found: Openable, defaults: Defaults, reading: ReadingProgress) -> OpenedProgram:
    """A function of a Python file, which is run in a process of its own and compiled for one target."""
    options = read_options(found.options, OF_FUNCTION)
    options = replace(options, mesh=options.mesh or defaults.mesh, target=options.target or defaults.target)
    file, name = find_function(found.path)
    mesh, targets = parse_mesh(options.mesh), parse_targets(options.target)
    if len(targets) != 1:
        raise TargetError(f"{quote(options.target)} is not one target", "name one, such as v5e:2x4")
    target = targets[0]
    check_mesh(target, mesh)
    machine = named_machine(options.machine) if options.machine else None
    reading.say(f"running {Path(file).name}")
    request = UserFileRequest(file, name, mesh, (target.platform,), defaults.is_explicit)
    process = UserFileProcess(request, os.environ, is_silent=True)
    reading.end_by(process.kill)
    program = process.result(PATIENCE_S)
    reading.say(f"{target.name} compiles {name}")
    lowered = program.lowered_for(target.platform)
    asked = defaults.worker.compile(lowered, target, with_costs=target.machine is not None)
    reading.end_by(asked.cancel)
    compiled = asked.result()
    if compiled.answer.status == "unavailable":
        compiled.check()
    reading.say(f"reading {name}")
    told = compiled.times(machine)
    listed = None
    if compiled.module is not None and compiled.mesh is not None:
        listed = read_program(compiled.answer, compiled.mesh)
    report = compiled.report(told)
    return OpenedProgram(found, options, (), compiled.mesh, report, listed, (), compiled, told)


def _profile(found: Openable, defaults: Defaults, reading: ReadingProgress) -> OpenedProfile:
    """A profile, with the program's text as far as XLA reads what it brings. Raises `QuestionError` for a
    file that is no profile."""
    options = read_options(found.options, OF_PROFILE)
    options = replace(options, machine=options.machine or defaults.named_machine)
    given = _mesh(options)
    machine: Machine | None = named_machine(options.machine) if options.machine else None
    if options.step and not options.step.isdecimal():
        raise QuestionError(f"{quote(options.step)} is not the number of a step", "write --step 3")
    hlo = read_text_file(options.hlo).text if options.hlo else ""
    files = trace_files.read_trace(found.path, partial(reading.say_bytes, found.name))

    def find_texts(protos: Sequence[bytes]) -> Sequence[str]:
        asked = defaults.worker.module_texts(protos)
        reading.end_by(asked.cancel)
        try:
            return asked.result(PATIENCE_S)
        except (CompilerError, TimeoutError):
            return [""] * len(protos)
        finally:
            reading.say(f"reading {found.name}")

    step = int(options.step) if options.step else None
    profile = profile_answer.profile_with_texts(
        files, find_texts, hlo=hlo, mesh=given, machine=machine, device=options.device, step=step
    )
    return OpenedProfile(profile, shlex.join(["shardviz", "profile", found.path, *options.words]))


def changes_from(old: OpenedProgram, new: Openable, defaults: Defaults) -> Openable:
    """A program on screen and another one, to be compared: on one mesh and one machine, functions on the same
    target."""
    options = replace(old.options, device_order="")
    kinds = {old.found.kind, new.kind}
    if "function" in kinds:
        mesh, target = options.mesh or defaults.mesh, options.target or defaults.target
        options = replace(options, mesh=mesh, target=target)
    if kinds == {"saved"}:
        options = ReadingOptions()
    elif not options.machine and "program" in kinds:
        options = replace(options, machine=defaults.machine)
    return diff_of(replace(old.found, options=()), new, options.words)


def open_changes(found: Openable, defaults: Defaults, reading: ReadingProgress) -> OpenedChanges:
    """Two programs, read and compared as `shardviz diff` does: with seconds where a machine is named."""
    options = read_options(found.options, OF_FUNCTION)
    notes: list[str] = []
    summaries = []
    for each in found.pair:
        reading.say(f"reading {each.name}")
        allowed = {"saved": (), "function": OF_FUNCTION}.get(each.kind, ("mesh", "machine"))
        own = replace(ReadingOptions(), **{name: getattr(options, name) for name in allowed})
        opened = open_file(replace(each, options=tuple(own.words)), defaults, reading)
        summaries.append(_summary(opened, is_priced=bool(options.machine)))
        notes += opened.notes if isinstance(opened, OpenedProgram) else ()
    line = shlex.join(["shardviz", "diff", *(each.path for each in found.pair), *options.words])
    old, new = summaries
    return OpenedChanges(found, diff(old, new).changes, tuple(notes), line)


def _summary(opened: Opened, is_priced: bool) -> ReportSummary:
    """The summary of a program, or of all modules of a folder. Raises `QuestionError` for what has no
    program, and what a compiler has said where it has made none."""
    if isinstance(opened, OpenedModules):
        unpriced = (each if is_priced else _without_times(each) for each in opened.modules)
        return modules_summary(tuple(unpriced))
    assert isinstance(opened, OpenedProgram)
    if opened.saved is not None:
        return opened.saved
    if opened.compiled is not None:
        opened.compiled.check()
    if opened.report is None:
        raise QuestionError(f"{quote(opened.found.name)} is a log alone, without its program", HOW)
    has_times = is_priced or opened.compiled is not None
    report = opened.report if has_times else replace(opened.report, timeline=None)
    return summary_of(report, opened.compiled)


def _without_times(found: DumpedModule) -> DumpedModule:
    return replace(found, report=found.report and replace(found.report, timeline=None))
