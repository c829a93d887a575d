"""`shardviz.inspect`: the collectives in a program of the user's own process."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, overload

from shardviz.answers.programs import summary_of
from shardviz.answers.requests import answer_of
from shardviz.api.arguments import (
    JaxMesh,
    MachineLike,
    MeshLike,
    as_machine,
    as_mesh,
    check_timeout,
    target_text,
)
from shardviz.api.shared_worker import ask_program
from shardviz.api.shown import Shown, TimelineReport
from shardviz.compiler.lowering import check_program, compile_program, lower_program
from shardviz.compiler.messages import MemoryTexts, shardings_of
from shardviz.devices.found_hardware import found_placement, machine_of
from shardviz.documents.programs import hlo_document, program_document
from shardviz.errors import QuestionError, quote
from shardviz.hardware.machine import assumed_machine
from shardviz.hlo import Collective, HloModule, ShardyModule, read, read_hlo as read_compiled
from shardviz.hlo.arguments import ProgramArgument, arguments_of
from shardviz.lazy_names import LazyImports
from shardviz.reports.arrays import ProgramArray, ProgramEnds, arrays_of
from shardviz.reports.entries import BY_COST, entries_of
from shardviz.reports.lowered_module import LoweredArray, LoweredModule, ProgramChange
from shardviz.reports.program_report import (
    OutOfMemoryError as OutOfMemoryError,
    ProgramReport,
    TargetProgram,
    TargetTimes,
    report_of,
    widened_types,
)
from shardviz.reports.rematerialization import Rematerialization, rematerializations_of
from shardviz.reports.target_result import TargetResult
from shardviz.reports.verdicts import WasteVerdict, verdicts
from shardviz.reports.why import Reason, reasons
from shardviz.sharding import Mesh, canonical_dtype
from shardviz.targets import parse_targets
from shardviz.timeline.compiler_memory import read_memory
from shardviz.timeline.of_program import timed_program

with LazyImports():
    from shardviz.render import lines as render_lines, palette as palettes
    from shardviz.render.programs import array_table, cost_lines, program_view
    from shardviz.render.times import live_memory

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.reports.changes import ReportSummary
    from shardviz.timeline.program_timeline import MemoryReport


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """The answer of `shardviz hlo`: a module and its collectives.

    `given` is the mesh that the user, or the user's program, named; None where there is none. `notes` are
    sentences on how `text` was read. `compiled` is the answer of the target that `inspect` was asked for: its
    placement, its memory, its versions; None for other programs. `ends` is what JAX knows of its arguments
    and results, and `counted` the compiler's account of a device's memory, of a program without a target."""

    module: HloModule | ShardyModule
    given: Mesh | None
    text: str
    notes: tuple[str, ...] = ()
    compiled: TargetProgram | None = None
    ends: ProgramEnds = field(default=ProgramEnds(), repr=False)
    counted: MemoryReport | None = field(default=None, repr=False)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """In program order, each with how often it runs."""
        return self.module.collectives

    @property
    def mesh(self) -> Mesh | None:
        """The mesh whose axes the collectives name: given, or inferred; None if unknown."""
        return self.module.mesh

    @property
    def arguments(self) -> tuple[ProgramArgument, ...]:
        """The arguments that a compiled program uses, by the paths that JAX gives them."""
        return arguments_of(self.text)

    @cached_property
    def arrays(self) -> tuple[ProgramArray, ...]:
        """Every array of a compiled program: its spec, bytes per device and copies, and what of it is waste.
        What is inside of loops is told only with a target."""
        if self.compiled is not None and self.compiled.lowered is not None:
            return self.compiled.arrays
        if not isinstance(self.module, HloModule):
            return ()
        mesh = self.mesh or Mesh(("device",), (self.module.num_partitions,))
        return arrays_of(self.module, mesh, self.ends)

    @property
    def memory(self) -> MemoryReport | None:
        """Bytes of one device by the compiler; None where it tells none, and of text."""
        return self.counted if self.compiled is None else self.compiled.memory

    def summary(self, machine: MachineLike = None) -> ReportSummary:
        """Return the collectives with their costs, the same on every run and every computer.

        Seconds are those of the target or of `machine`; without either there are none."""
        return summary_of(self._priced(machine), self.compiled, self.arrays)

    @cached_property
    def _on_target(self) -> ProgramReport:
        return self._priced(None)

    def _priced(self, machine: MachineLike) -> ProgramReport:
        """The collectives with what they cost on the target, or on a machine; else without times."""
        named = as_machine(machine)
        if self.compiled is not None:
            report = self.compiled.report(self.compiled.times(named))
            assert report is not None
            return report
        is_timed = named is not None and isinstance(self.module, HloModule)
        return report_of(self.module, self.timeline(named).timeline if is_timed else None)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reason of each collective, local slices excluded, in program order: with a target the two
        shardings that differ, else what shapes and groups show."""
        if self.compiled is not None:
            return self.compiled.reasons
        return reasons(entries_of(self.module), self.mesh)

    def why(self, timeout: float = 300.0) -> WhyReport:
        """Return the wastes of the program with their mends, and the reason of each collective, the most
        expensive first.

        With a target, changes are tried on Shardy and on the target: another sharding of an argument, of a
        result or of the value that moves, or a constraint less. Each try may take `timeout` seconds; failed
        tries are skipped. Without a target the reasons follow from shapes and groups, and nothing is tried.
        """
        compiled = self.compiled
        if compiled is None or (lowered := compiled.lowered) is None:
            return WhyReport(self._on_target, self.reasons, compiled=compiled)

        def ask(name: str, changes: Sequence[ProgramChange]) -> TargetProgram:
            options = compiled.options if name == compiled.target else {}
            (answer,) = ask_program(lambda _: lowered, parse_targets(name), timeout, options, changes=changes)
            return answer

        return WhyReport(self._on_target, compiled.reasons, verdicts(ask, compiled), compiled)

    @property
    def rematerializations(self) -> tuple[Rematerialization, ...]:
        """Arrays that the compiler fully replicates in order to reshard them: with a target all that it warns
        of or shows, else those that the text alone proves."""
        if self.compiled is not None and self.compiled.lowered is not None:
            return self.compiled.rematerializations
        return rematerializations_of(self.module) if isinstance(self.module, HloModule) else ()

    def timeline(self, machine: MachineLike = None) -> TimelineReport:
        """Return when each instruction of a compiled program runs on a machine, and its live memory.

        `machine` is text such as ``"v5e:2x4"``, or a TOML file; the default is the target's hardware, else a
        v5e on which every mesh axis is a ring. Raises `QuestionError` for a program that is not compiled, and
        for a machine that does not exist or cannot hold the mesh."""
        if not isinstance(self.module, HloModule):
            problem = "times are of a compiled program, and this is not compiled yet"
            raise QuestionError(problem, "give HLO: lowered.compile().as_text()")
        if self.compiled is not None:
            return TimelineReport(self.compiled.times(as_machine(machine)).found())
        hardware = as_machine(machine) or assumed_machine()
        model = timed_program(self.text, hardware, mesh=self.module.mesh, infer=self.module.mesh is None)[1]
        return TimelineReport(TargetTimes(replace(model, notes=(*model.notes, *self.notes))))

    def lines(self, width: int, palette: palettes.Palette, verbose: bool = False) -> list[Text]:
        if self.compiled is not None:
            return program_view.program_view(self.compiled, self._on_target, width, palette, verbose=verbose)
        from rich.text import Text

        lines = program_view.hlo_view(self._on_target, self.given, width, palette, verbose=verbose)
        lines += array_table.rematerialization_lines(self.rematerializations, width)
        if self.counted is not None:
            lines += [Text(), *program_view.memory_lines(self.counted, width, palette, verbose)]
        for note in (*self.notes, *self.module.unread):
            lines += render_lines.sentence(note, width, lead="note: ")
        return lines

    def document(self) -> dict[str, Any]:
        return hlo_document(
            self._on_target, self.given, rematerializations=self.rematerializations, compiled=self.compiled
        )


def read_hlo(text: str, mesh: MeshLike | None = None) -> Report:
    """Return the collectives of HLO, StableHLO or Shardy text, such as `compiled.as_text()`.

    `mesh` is text, a shardviz Mesh or a jax Mesh; without one, axes are inferred from the groups of devices.
    Damaged text is read as far as possible; `module.unread` lists the rest.

    Raises `NotationError` for other text, `QuestionError` for a mesh that does not fit the module."""
    if not isinstance(text, str):
        hint = "give compiled.as_text() or a file's read_text(); shardviz.inspect(…) takes programs"
        raise QuestionError(f"a {type(text).__name__} is not text", hint)
    given = None if mesh is None else as_mesh(mesh)
    return Report(read(text, given, infer=True, origins=True), given, text)


@dataclass(frozen=True, repr=False)
class WhyReport(Shown):
    """The collectives of a `report`, with a reason for each of its `entries`, in program order.

    `verdicts` are the wastes with what mends each, those that cost most first. There are none if nothing
    helps, or if the program before compilation is not available."""

    report: ProgramReport
    reasons: tuple[Reason, ...]
    verdicts: tuple[WasteVerdict, ...] = ()
    compiled: TargetProgram | None = None

    def lines(self, width: int, palette: palettes.Palette, verbose: bool = False) -> list[Text]:  # noqa: ARG002
        from rich.text import Text

        if not self.report.entries and not self.verdicts:
            return [Text("no collective: nothing is sent")]
        if self.compiled is None:
            return cost_lines.shape_lines(self.report, BY_COST, width, palette)[1:]
        lines = cost_lines.verdict_lines(self.verdicts, width)
        return (lines + cost_lines.why_lines(self.report, self.reasons, BY_COST, width, palette))[1:]

    def document(self) -> dict[str, Any]:
        if self.compiled is None:
            return hlo_document(self.report, self.report.module.mesh)
        name = self.report.module.name
        return program_document(name, [(self.compiled, self.report)], verdicts=[self.verdicts])


@dataclass(frozen=True, repr=False)
class TargetReports(Shown):
    """A program on several targets: `programs` has the answer or error of each.

    ``reports["v5e:2x4"]`` is the report of one."""

    name: str
    programs: tuple[TargetProgram, ...]

    def __getitem__(self, target: str) -> Report:
        """The report of one target. Raises its error, or `QuestionError` for one that was not asked."""
        return _report(answer_of(target, self.programs))

    def lines(self, width: int, palette: palettes.Palette, verbose: bool = False) -> list[Text]:
        return program_view.programs_view(self._priced, width, palette, verbose=verbose)

    def document(self) -> dict[str, Any]:
        return program_document(self.name, self._priced)

    @cached_property
    def _priced(self) -> list[tuple[TargetProgram, ProgramReport | None]]:
        """Each target's answer, and its collectives with what they cost on its own hardware."""
        return [(program, program.report(program.times())) for program in self.programs]


@overload
def inspect(
    program: Any, /, *args: Any, target: str | None = None, targets: None = None, **named: Any
) -> Report: ...


@overload
def inspect(program: Any, /, *args: Any, targets: Sequence[str] | str, **named: Any) -> TargetReports: ...


def inspect(
    program: Any,
    /,
    *args: Any,
    target: str | None = None,
    targets: Sequence[str] | str | None = None,
    options: Mapping[str, Any] | None = None,
    times: bool = False,
    timeout: float = 300.0,
    kwargs: Mapping[str, Any] | None = None,
    **named: Any,
) -> Report | TargetReports:
    """Return the collectives that XLA put into a program, with the mesh's axis names and device ids.

    - `program`: a function, jitted or not, with its arguments, or the result of its `lower` or `compile`. It
      is compiled, not run. Arguments are arrays or `jax.ShapeDtypeStruct`s with shardings, which have the
      mesh; without a mesh, axes are inferred from the groups of devices.
    - `target`: hardware to compile for, such as ``"v5p:4x4x4"``; you need not have it. The program is traced
      here and compiled in another process. `jax.make_mesh` places the mesh on the target's devices; the mesh
      may have simulated devices, or be a `jax.sharding.AbstractMesh`.
    - `targets`: several targets; the answer is a table, and one that fails does not affect the others.
    - `times`: also ask for the compiler's own schedule and memory. `timeout`: seconds per target.
    - `options`: compiler options by name, such as ``{"xla_tpu_scoped_vmem_limit_kib": 16384}``.
    - `kwargs`: the program's keyword arguments; those that `inspect` does not have may also be `named`.

    Raises `QuestionError` for what is not a program, `TargetError` for a target with another number of
    devices, and `CompilerError` if one target fails: `OutOfMemoryError`, with `memory`, if the program does
    not fit. Errors of JAX are not caught."""
    if target is not None and targets is not None:
        raise QuestionError("target and targets cannot be combined", "leave out one of them")
    for word, given, key in (("options", options, "'xla_…'"), ("kwargs", kwargs, "'name'")):
        if given is not None and not isinstance(given, Mapping):
            raise QuestionError(f"{word}={quote(repr(given))} is not a dictionary", f"give {{{key}: value}}")
    named |= kwargs or {}
    check_timeout(timeout)
    if target is None and targets is None:
        return _inspected(program, args, named, dict(options or {}))
    names = target_text(targets if targets is not None else target or "")
    if target is not None and "," in names:
        raise QuestionError(f"{quote(names)} is not one target", f"use targets={names.split(',')}")
    asked = parse_targets(names)
    if not asked:
        raise QuestionError("no target is named", "name hardware such as v5e:2x4")
    check_program(program)

    @cache
    def program_for(platform: str) -> LoweredModule:
        return lower_program(program, args, named, platform)

    answers = ask_program(program_for, asked, timeout, dict(options or {}), times)
    if target is not None:
        return _report(answers[0])
    name = getattr(program, "__name__", None) or getattr(program, "fun_name", "") or "program"
    return TargetReports(str(name), answers)


def _report(compiled: TargetProgram) -> Report:
    try:
        compiled.check()
    except OutOfMemoryError as error:
        lines = live_memory.memory_report_lines(error.memory, 80, palettes.PLAIN)
        error.add_note("\n".join(line.plain for line in lines))
        raise
    assert compiled.module is not None
    return Report(compiled.module, compiled.mesh, compiled.answer.text, compiled.notes, compiled)


def _inspected(
    program: Any, args: Sequence[Any], kwargs: Mapping[str, Any], options: dict[str, Any]
) -> Report:
    compiled = compile_program(program, args, kwargs, options)
    text = compiled.as_text()
    if not text:
        raise QuestionError("this compiler shows no text of its programs", "ask on a CPU, a TPU or a GPU")
    shardings = [
        *compiled.in_tree.flatten_up_to(compiled.input_shardings),
        *compiled.out_tree.flatten_up_to(compiled.output_shardings),
    ]
    meshes = _meshes(shardings)
    modules: list[tuple[HloModule, JaxMesh]] = []
    notes = []
    for mesh in meshes:
        try:
            module = read_compiled(text, mesh.mesh(), slices=mesh.slices, origins=True)
        except QuestionError as error:
            notes.append(f"axes are not named after the mesh {mesh.mesh()}: {error.message}")
        else:
            modules.append((replace(module, collectives=_with_ids(module.collectives, mesh.ids)), mesh))
    best = max(modules, key=lambda pair: sum(bool(one.axes) for one in pair[0].collectives), default=None)
    if best is not None and len(meshes) > 1:
        several = " and ".join(str(mesh.mesh()) for mesh in meshes)
        notes.append(f"this program has several meshes: {several}; axes are named after {best[0].mesh}")
    module = read_compiled(text, infer=True, origins=True) if best is None else best[0]
    devices = {device for sharding in shardings for device in getattr(sharding, "device_set", ())}
    if any(device.platform == "cpu" for device in devices):
        notes += widened_types(text, module.collectives)
    given, placed = (None, None) if best is None else (module.mesh, best[1].devices)
    machine = machine_of(placed) if placed else None
    memory = None
    with suppress(Exception):  # not every jaxlib has one of every chip
        if sizes := MemoryTexts.of(compiled.memory_analysis()).sizes:
            limit = None if machine is None else machine.device.limit_bytes
            memory = read_memory(dict(sizes), "", "", text, limit)
    if not placed or machine is None:
        return Report(module, given, text, tuple(notes), ends=_ends(compiled), counted=memory)
    where = found_placement(machine.family, placed)
    answer = TargetResult(machine.name, "ok", module.collectives, text=text, placement=where, memory=memory)
    program = TargetProgram(answer, module, given, tuple(notes))
    return Report(module, given, text, tuple(notes), program, _ends(compiled))


def _ends(compiled: Any) -> ProgramEnds:
    """The results of a JAX `Compiled`, and XLA's shardings of both ends."""
    if not hasattr(compiled, "out_info"):  # as in JAX's older releases
        return ProgramEnds()
    tree = sys.modules["jax"].tree_util
    shardings = compiled.out_tree.flatten_up_to(compiled.output_shardings)
    results = [
        LoweredArray(
            f"result{tree.keystr(path)}",
            tuple(leaf.shape),
            canonical_dtype(str(leaf.dtype)),
            memory_kind=getattr(sharding, "memory_kind", None) or "",
        )
        for (path, leaf), sharding in zip(
            tree.tree_flatten_with_path(compiled.out_info)[0], shardings, strict=True
        )
    ]
    return ProgramEnds((), results, *shardings_of(compiled.runtime_executable()))


def _with_ids(collectives: Sequence[Collective], ids: Sequence[int] | None) -> tuple[Collective, ...]:
    """Groups in the ids of the devices, which were numbered from 0 in the order of these."""
    number = sorted(ids or ())
    if number == [*range(len(number))]:
        return tuple(collectives)
    return tuple(
        replace(one, groups=one.groups and tuple(tuple(number[i] for i in group) for group in one.groups))
        for one in collectives
    )


def _meshes(shardings: Sequence[Any]) -> tuple[JaxMesh, ...]:
    by_axes: dict[tuple[object, ...], JaxMesh] = {}
    for sharding in shardings:
        mesh = JaxMesh.of(getattr(sharding, "mesh", None))
        if mesh is None or not mesh.axis_names:
            continue
        shown = Mesh(mesh.axis_names, mesh.axis_sizes).without_ones()
        axes = shown.axis_names, shown.axis_sizes
        # An abstract mesh tells nothing that a mesh of devices does not.
        if axes not in by_axes or by_axes[axes].ids is None:
            by_axes[axes] = replace(mesh, axis_names=shown.axis_names, axis_sizes=shown.axis_sizes)
    return tuple(by_axes.values())
