"""The contents of a file to show: read in a thread, since a program or a profile may take seconds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
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
from shardviz.reports.program_report import DumpedModule, ProgramReport, TimesAnswer, read_dumped
from shardviz.reports.rematerialization import Rematerialization
from shardviz.reports.target_result import TargetResult
from shardviz.targets import check_mesh, parse_targets
from shardviz.tui.opening.kinds import Kind, Openable, Options, diff_of, read_options, words_of
from shardviz.tui.time.timelines import OpenedProfile
from shardviz.units import human_bytes

with LazyImports():
    from shardviz.answers import profile as profile_answer
    from shardviz.profiles import trace_files

if TYPE_CHECKING:
    from shardviz.reports.changes import ReportChanges, ReportSummary
    from shardviz.reports.target_program import TargetProgram
    from shardviz.sharding import Mesh
    from shardviz.tui.state import EditorState

PATIENCE_S = 120.0
"""Seconds for XLA to write the text of a profile's programs, and for a file of the user's to run."""
PIECE = 2**22
"""Characters of a text that are searched at once."""
OF_PROGRAM = ("mesh", "device_order", "machine")
OF_FUNCTION = ("mesh", "target", "machine")
OF_PROFILE = ("mesh", "device_order", "machine", "hlo", "step", "device")
"""The options of each kind."""


class OpeningReader:
    """Reads one thing in a thread, and tells `show` how far it is.

    Where nothing else is named, the mesh and the target of the problem on screen are for functions, and its
    `machine` prices programs; `named_machine` is that of its field alone, empty where there is none.
    """

    def __init__(self, state: EditorState, show: Callable[[Text], object]) -> None:
        now = state.resolved
        hardware = (target.name for target in now.targets if target.machine is not None)
        self.mesh, self.target = str(now.problem.mesh), next(hardware, "cpu")
        self.named_machine = now.shown.machine if now.named is not None else ""
        self.machine = self.named_machine or ("" if now.machine.assumed else now.machine.name)
        self._is_explicit = now.shown.axis_types == "explicit"
        self._worker = state.queries.worker
        self.is_stopped = False
        self._show = show
        self._ends: list[Callable[[], object]] = []

    def say(self, words: str) -> None:
        """Show what is being done. Raises `Cancelled` where nobody waits for it any more."""
        if self.is_stopped:
            raise Cancelled("the reading was stopped")
        self._show(Text(f"{words} …", "dim"))

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

    def open(self, kind: Openable) -> Opened:
        """Read a file, a folder, a function or two programs. Raises what their readers raise, and
        `QuestionError` for options that they do not have."""
        if kind.kind == "saved":
            read_options(kind.options, ())
            return OpenedProgram(kind, {}, saved=load_summary(Path(kind.path)))
        readers: dict[Kind, Callable[[Openable], Opened]] = {
            "modules": self._modules,
            "profile": self._profile,
            "diff": self.changes,
            "function": self._function,
        }
        return readers.get(kind.kind, self.program)(kind)

    def program(self, kind: Openable) -> OpenedProgram:
        """A file of HLO, StableHLO or Shardy text, or of a log; HLO is priced on a machine.

        Raises `QuestionError` for a file without any of that, and for a program that the machine cannot run.
        Only one that is named has to.
        """
        options = read_options(kind.options, OF_PROGRAM)
        given = _mesh(options)
        file = read_text_file(kind.path)
        question = ProgramQuestion(file.text, given, self._has)
        name = Path(kind.path).name
        if question.language == "hlo":
            self.say(f"reading the collectives of {name}")
            answer, options = self._priced(question, options)
        else:
            # The error about a text that is none of these needs no more than its beginning.
            is_read = question.language or question.is_log_alone
            answer = (question if is_read else ProgramQuestion(file.text[:PIECE], given)).answer()
        if answer.report is None:
            return OpenedProgram(kind, options, file.notes, answer.mesh, remade=answer.remade)
        module = answer.report.module
        if module.unread_collectives and not module.collectives:
            raise QuestionError(module.unread[0], HOW)
        listed = None
        if module.mesh is not None:
            self.say(f"reading the lines of {name}")
            result = TargetResult(name, "ok", tuple(module.collectives), text=question.text)
            listed = read_program(result, module.mesh)
        notes = (*file.notes, *module.unread)
        return OpenedProgram(kind, options, notes, module.mesh, answer.report, listed, answer.remade)

    def _has(self, text: str, check: Callable[[str], bool]) -> bool:
        """Return whether a check finds something in a text. It looks at pieces of whole lines: the screen
        waits for each search, and between two a reading may be stopped."""
        start = 0
        while start < len(text):
            self.say("looking for a program")
            end = text.find("\n", start + PIECE) + 1 or len(text)
            if check(text[start:end]):
                return True
            start = end
        return False

    def _priced(self, question: ProgramQuestion, options: Options) -> tuple[ProgramAnswer, Options]:
        """The answer with seconds, and the options with the machine of these."""
        if "machine" in options:
            return question.answer(named_machine(options["machine"])), options
        if self.machine:
            with suppress(QuestionError):  # the problem's machine may not be for this program
                answer = question.answer(named_machine(self.machine))
                return answer, {**options, "machine": self.machine}
        return question.answer(assumed_machine()), options

    def _modules(self, kind: Openable) -> OpenedModules:
        """A folder of dumps. Raises `QuestionError` where it has the final program of no module."""
        options = read_options(kind.options, OF_PROGRAM)
        given, machine = _mesh(options), options.get("machine", self.machine)
        on = named_machine(machine) if machine else assumed_machine()
        files = final_programs(Path(kind.path))
        modules = (read_dumped(file, read_text_file(file.path).text, given, on) for file in files)
        return OpenedModules(kind, options, tuple(modules))

    def _function(self, kind: Openable) -> OpenedProgram:
        """A function of a Python file, which is run in a process of its own and compiled for one target."""
        own = {"mesh": self.mesh, "target": self.target}
        options = {**own, **read_options(kind.options, OF_FUNCTION)}
        file, name = find_function(kind.path)
        mesh, targets = parse_mesh(options["mesh"]), parse_targets(options["target"])
        if len(targets) != 1:
            raise TargetError(f"{quote(options['target'])} is not one target", "name one, such as v5e:2x4")
        target = targets[0]
        check_mesh(target, mesh)
        machine = named_machine(options["machine"]) if "machine" in options else None
        self.say(f"running {Path(file).name}")
        request = UserFileRequest(file, name, mesh, (target.platform,), self._is_explicit)
        process = UserFileProcess(request, os.environ, is_silent=True)
        self.end_by(process.kill)
        program = process.result(PATIENCE_S)
        self.say(f"{target.name} compiles {name}")
        lowered = program.lowered_for(target.platform)
        asked = self._worker.compile(lowered, target, with_costs=target.machine is not None)
        self.end_by(asked.cancel)
        compiled = asked.result()
        if compiled.answer.status == "unavailable":
            compiled.check()
        self.say(f"reading {name}")
        told = compiled.times(machine)
        listed = None
        if compiled.module is not None and compiled.mesh is not None:
            listed = read_program(compiled.answer, compiled.mesh)
        report = compiled.report(told)
        return OpenedProgram(kind, options, (), compiled.mesh, report, listed, (), compiled, told)

    def _profile(self, kind: Openable) -> OpenedProfile:
        """A profile, with the program's text as far as XLA reads what it brings. Raises `QuestionError` for a
        file that is no profile."""
        own = {"machine": self.named_machine} if self.named_machine else {}
        options = {**own, **read_options(kind.options, OF_PROFILE)}
        given = _mesh(options)
        machine = named_machine(options["machine"]) if "machine" in options else None
        step = options.get("step")
        if step and not step.isdecimal():
            raise QuestionError(f"{quote(step)} is not the number of a step", "write --step 3")
        hlo = read_text_file(options["hlo"]).text if "hlo" in options else ""

        def say_bytes(name: str, done: int, size: int) -> None:
            self.say(f"reading {name}: {human_bytes(done)} of {human_bytes(size)}")

        def find_texts(protos: Sequence[bytes]) -> Sequence[str]:
            asked = self._worker.module_texts(protos)
            self.end_by(asked.cancel)
            try:
                return asked.result(PATIENCE_S)
            except (CompilerError, TimeoutError):
                return [""] * len(protos)
            finally:
                self.say(f"reading {kind.name}")

        profile = profile_answer.profile_with_texts(
            trace_files.read_trace(kind.path, partial(say_bytes, kind.name)),
            find_texts,
            hlo=hlo,
            mesh=given,
            machine=machine,
            device=options.get("device", ""),
            step=int(step) if step else None,
        )
        return OpenedProfile(profile, shlex.join(["shardviz", "profile", kind.path, *words_of(options)]))

    def changes_from(self, old: OpenedProgram, new: Openable) -> OpenedChanges:
        """The changes from a program on screen to another one: on one mesh and one machine, functions on the
        same target."""
        options = {name: value for name, value in old.options.items() if name != "device_order"}
        kinds = {old.found.kind, new.kind}
        if "function" in kinds:
            options = {"mesh": self.mesh, "target": self.target, **options}
        if kinds == {"saved"}:
            options = {}
        elif "program" in kinds:
            options.setdefault("machine", self.machine)
        return self.changes(diff_of(replace(old.found, options=()), new, words_of(options)))

    def changes(self, kind: Openable) -> OpenedChanges:
        """Two programs, read and compared as `shardviz diff` does: with seconds where a machine is named."""
        options = read_options(kind.options, OF_FUNCTION)
        notes: list[str] = []
        summaries = []
        for each in kind.pair:
            self.say(f"reading {each.name}")
            allowed = {"saved": (), "function": OF_FUNCTION}.get(each.kind, ("mesh", "machine"))
            own = {name: value for name, value in options.items() if name in allowed}
            opened = self.open(replace(each, options=tuple(words_of(own))))
            summaries.append(_summary(opened, is_priced="machine" in options))
            notes += opened.notes if isinstance(opened, OpenedProgram) else ()
        line = shlex.join(["shardviz", "diff", *(kind.path for kind in kind.pair), *words_of(options)])
        old, new = summaries
        return OpenedChanges(kind, diff(old, new).changes, tuple(notes), line)


@dataclass(frozen=True)
class OpenedProgram:
    """A program of a file, with the `options` that it was read with.

    Of a text there are its report and its lines; of a log alone what it says was made whole, and neither; of
    a function also what the target has answered, and of a report that was saved only that.
    """

    found: Openable
    options: Options
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
        return shlex.join(["shardviz", name, self.found.path, *words_of(self.options), *views])


@dataclass(frozen=True)
class OpenedModules:
    """The final programs of a folder of dumps."""

    found: Openable
    options: Options
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


def _mesh(options: Options) -> Mesh | None:
    """The mesh that is named, in the order that is named; None where none is."""
    if "mesh" in options:
        return parse_mesh(options["mesh"], options.get("device_order"))
    if "device_order" in options:
        raise QuestionError("--device-order is the order of a mesh's devices", "add --mesh X=2,Y=4")
    return None


def _summary(opened: Opened, is_priced: bool) -> ReportSummary:
    """The summary of a program, or of all modules of a folder. Raises `QuestionError` for what has no
    program, and what a compiler has said where it has made none."""

    def timed(report: ProgramReport) -> ProgramReport:
        return report if is_priced else replace(report, timeline=None)

    if isinstance(opened, OpenedModules):
        return modules_summary(
            tuple(replace(module, report=module.report and timed(module.report)) for module in opened.modules)
        )
    assert isinstance(opened, OpenedProgram)
    if opened.saved is not None:
        return opened.saved
    if opened.compiled is not None:
        opened.compiled.check()
    if opened.report is None:
        raise QuestionError(f"{quote(opened.found.name)} is a log alone, without its program", HOW)
    report = opened.report if opened.compiled is not None else timed(opened.report)
    return summary_of(report, opened.compiled)
