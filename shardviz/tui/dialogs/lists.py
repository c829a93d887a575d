"""The lists to choose from: commands, examples, lessons, places, and values of a field of the problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.widgets import Input

from shardviz.errors import ShardvizError, plural
from shardviz.forms.examples import Example, examples
from shardviz.forms.form import PROBLEM_FIELDS
from shardviz.forms.jumps import DeviceJump, StepJump, device_at
from shardviz.forms.share import Shared
from shardviz.forms.wording import error_words
from shardviz.hardware.chips import CHIPS
from shardviz.hardware.clusters import cluster_named, machines_of_size
from shardviz.hardware.machine import Machine
from shardviz.lazy_names import LazyImports
from shardviz.planner.problem.dtypes import parse_dtypes
from shardviz.render.caption import coordinates
from shardviz.render.cost_view import peak_words
from shardviz.render.machine_view import machine_words
from shardviz.sharding.array import BITS, other_names
from shardviz.stepping.plan_step import collective_steps
from shardviz.targets import EXTRAS, TARGETS, parse_targets
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow
from shardviz.tui.registry import AREAS, Command

with LazyImports():
    from shardviz.lessons import course
    from shardviz.render import lesson_view

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.lessons.lesson import Lesson
    from shardviz.tui.kept import LessonProgress


class PaletteDialog(FilteredList):
    """Leaves with one of these commands."""

    title_text = "Commands"
    nothing = "No command matches; remove some words."
    subject: Sequence[Command]

    def on_mount(self) -> None:
        rows = []
        for command in self.subject:
            heading = Text(AREAS.get(command.area, "This window"), "bold")
            line = Text.assemble(f"  {command.title}", (f"  {command.own_key}", "dim"))
            words = f"{command.title} {heading} {command.own_key} {command.help}"
            rows.append(ListRow(line, words, command, heading))
        self.show_rows(rows)

    def about(self, row: ListRow) -> Text:
        return Text(row.value.help)


class ExamplesDialog(FilteredList):
    """Leaves with the problem of an example, and the screen that shows it best."""

    title_text = "Examples"
    nothing = "No example matches; remove some words."

    def on_mount(self) -> None:
        rows = []
        for example in examples():
            words = f"{example.document} {example.title} {example.look}"
            rows.append(ListRow(Text(f"  {example.title}"), words, example, Text(example.document, "bold")))
        self.show_rows(rows)

    def about(self, row: ListRow) -> Text:
        example: Example = row.value
        draft, area = example.draft, AREAS[example.screen]
        what = f"{draft.einsum}   {', '.join(draft.specs[:-1])} -> {draft.specs[-1]}"
        if draft.collective is not None:
            what = draft.collective.op
        line = f"{what}   {draft.mesh.replace(',', ' ')}\n"
        return Text.assemble((line, "bold"), f"{example.look}", (f"\nOpens {area}.", "dim"))

    def leave_with(self, row: ListRow) -> None:
        self.dismiss(Shared(row.value.draft, row.value.screen))


class LessonsDialog(FilteredList):
    """Leaves with a lesson. The cursor is first on the one that is open, or that is not solved yet."""

    title_text = "Lessons"
    nothing = "No lesson matches; remove some words."
    subject: tuple[LessonProgress, Lesson | None]

    async def on_mount(self) -> None:
        progress, open_now = self.subject
        try:
            lessons = course.course()
        except ShardvizError as error:
            self.describe(Text(error_words(error)))
            return
        entries = await progress.entries(lessons)
        rows = []
        for lesson, line in zip(lessons, map(lesson_view.course_line, entries), strict=True):
            rows.append(ListRow(line, f"{lesson.number} {line.plain} {lesson.goal.text}", lesson))
        unsolved = (row.value for row, entry in zip(rows, entries, strict=True) if entry.state != "solved")
        self.show_rows(rows, open_now if open_now in lessons else next(unsolved, None))
        progress.report(self.app)

    def about(self, row: ListRow) -> Text:
        lesson: Lesson = row.value
        return Text.assemble((f"{lesson.title}\n", "bold"), lesson.goal.text)


LISTED = 64
"""Devices that are listed; any other is found by its number or its coordinates."""


class JumpDialog(FilteredList):
    """Leaves with a `Jump`."""

    title_text = "Go to"
    placeholder = "a device: 5 or X=1,Y=2; a collective"
    kind = "fitted"
    subject: ResolvedProblem

    def on_mount(self) -> None:
        devices = range(min(self.subject.problem.mesh.size, LISTED))
        self.show_rows([*map(self._device, devices), *self._steps()])

    @property
    def nothing(self) -> str:  # type: ignore[override]
        try:
            device_at(self.query_one(Input).value, self.subject.problem.mesh)
        except ShardvizError as error:
            return error_words(error)
        return "No device and no collective has this name."

    def row_of(self, typed: str) -> ListRow | None:
        try:
            device = device_at(typed, self.subject.problem.mesh)
        except ShardvizError:
            return None
        return None if device is None else self._device(device.position)

    def _narrow(self, first: Any) -> None:
        super()._narrow(first)
        self.set_class(self.chosen is None, "nothing")

    def _device(self, position: int) -> ListRow:
        mesh = self.subject.problem.mesh
        words = coordinates(mesh, position, self.palette)
        line = Text.assemble(f"  device {mesh.device_id(position)}  ", words)
        return ListRow(line, line.plain, DeviceJump(position), Text(f"devices of {mesh}", "bold"))

    def _steps(self) -> Iterator[ListRow]:
        steps = self.subject.plan.steps
        for number in collective_steps(self.subject.plan):
            step = steps[number - 1]
            line = f"  {number}  {step.op} {step.array} over {','.join(step.axes)}"
            yield ListRow(Text(line), line, StepJump(number), Text("collectives of the plan", "bold"))


JAX = Text("JAX alone", "bold")
KINDS = {"tpu": Text("TPUs, none needed here", "bold"), "cuda": Text("NVIDIA GPUs, none needed here", "bold")}
"""The headings of hardware."""


class DtypePicker(FilteredList):
    """Every dtype, the usual ones first; single arrays keep theirs."""

    title_text = "Dtype of the arrays"
    nothing = "No dtype has this name."
    subject: ResolvedProblem

    def on_mount(self) -> None:
        usual = PROBLEM_FIELDS["dtype"].usual
        others = [name for name, bits in BITS.items() if bits and name not in usual]
        rows = [self._row(name, "usual") for name in usual]
        rows += [self._row(name, "all others") for name in others]
        self.show_rows(rows, self.subject.draft.dtype)

    def _row(self, name: str, heading: str) -> ListRow:
        size = plural(BITS[name], "bit") if BITS[name] % 8 else plural(BITS[name] // 8, "byte")
        line = _named(name, size)
        value = str(replace(parse_dtypes(self.subject.shown.dtype), usual=name))
        return ListRow(line, f"{line.plain} {' '.join(other_names(name))}", value, Text(heading, "bold"))

    def about(self, row: ListRow) -> Text:
        machine, name = self.subject.machine, parse_dtypes(row.value).usual
        said = Text.assemble((f"{name}\n", "bold"), f"{machine.chip}: {peak_words(machine, name)}.")
        if names := other_names(name):
            said.append(f"\nAlso {', '.join(names)}.")
        return said


class MachinePicker(FilteredList):
    """All hardware with as many devices as the mesh; what is typed may be any other, or a machine file."""

    title_text = "Machine for the times"
    placeholder = "type to find, or another: 2*v5e:4x4, FILE.toml"
    nothing = "No machine has this name."
    subject: ResolvedProblem

    def on_mount(self) -> None:
        own = _named("by target", "that of the first target, else v5e rings")
        rows = [_machine_row(machine) for machine in machines_of_size(self.subject.problem.mesh.size)]
        self.show_rows([ListRow(own, own.plain, ""), *rows], self.subject.draft.machine)

    def row_of(self, typed: str) -> ListRow | None:
        if typed.endswith(".toml"):
            return ListRow(_named(typed, "a machine file"), typed, typed)
        return _typed_machine(typed)

    def about(self, row: ListRow) -> Text:
        named = cluster_named(row.value) if row.value and not row.value.endswith(".toml") else None
        return machine_words(named or self.subject.machine)


class TargetPicker(FilteredList):
    """The compilers to ask: `enter` asks one more, or one that is asked no longer."""

    title_text = "Compilers to ask"
    placeholder = "type to find, or another: v5p:4x4x8, h100:2x8"
    nothing = "No compiler has this name."
    subject: ResolvedProblem

    @property
    def _asked(self) -> list[str]:
        return [target.name for target in self.subject.targets]

    def on_mount(self) -> None:
        hardware = [target.machine for target in self.subject.targets if target.machine is not None]
        machines = [*hardware, *machines_of_size(self.subject.problem.mesh.size)]
        plain = [
            ListRow(_named(target.name, target.description), target.name, target.name, JAX)
            for target in TARGETS.values()
        ]
        rows = {row.value: self._with_mark(row) for row in (*plain, *map(_machine_row, machines))}
        self.show_rows([*rows.values()], next((name for name in rows if name not in self._asked), None))

    def _with_mark(self, row: ListRow) -> ListRow:
        mark = "✓ " if row.value in self._asked else "  "
        return replace(row, line=Text.assemble(mark, row.line), words=f"{row.words} {row.line.plain}")

    def row_of(self, typed: str) -> ListRow | None:
        row = _typed_machine(typed)
        return None if row is None else self._with_mark(row)

    def about(self, row: ListRow) -> Text:
        (target,) = parse_targets(row.value)
        if target.machine is None:
            return Text.assemble((f"{target.name}\n", "bold"), f"{target.description}.")
        said = machine_words(target.machine)
        size, extra = self.subject.problem.mesh.size, EXTRAS[target.process]
        if target.machine.devices != size:
            said.append(f"\nThe mesh has {plural(size, 'device')}.")
        if not extra.installed:
            said.append(f"\nNot installed: {extra.command}" if extra.installable else "\nNot on this system.")
        return said

    def leave_with(self, row: ListRow) -> None:
        others = [name for name in self._asked if name != row.value]
        self.dismiss(",".join(others if row.value in self._asked else [*others, row.value]) or "none")


PICKERS = {"dtype": DtypePicker, "machine": MachinePicker, "targets": TargetPicker}
"""The lists by the field of the problem whose text they leave with."""


def _named(name: str, what: str) -> Text:
    return Text.assemble((f"{name:<14} ", "bold"), (what, "dim"))


def _machine_row(machine: Machine) -> ListRow:
    line, kind = _named(machine.name, machine.family.size_words()), KINDS[machine.family.process]
    return ListRow(line, f"{line.plain} {CHIPS[machine.chip].device_kind}", machine.name, kind)


def _typed_machine(typed: str) -> ListRow | None:
    named = cluster_named(typed)
    return None if named is None else _machine_row(named)
