"""The lists of values for a field of the problem: what there is, and what each is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import plural
from shardviz.forms.form import PROBLEM_FIELDS
from shardviz.hardware.chips import CHIPS
from shardviz.hardware.clusters import cluster_named, machines_of_size
from shardviz.hardware.machine import Machine
from shardviz.render.cost_view import peak_words
from shardviz.render.machine_view import machine_words
from shardviz.sharding.array import BITS, other_names
from shardviz.targets import EXTRAS, TARGETS, parse_targets
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem

NAME_WIDTH = 14
"""Columns of a name before what it is."""
JAX = Text("JAX alone", "bold")
KINDS = {"tpu": Text("TPUs, none needed here", "bold"), "cuda": Text("NVIDIA GPUs, none needed here", "bold")}
"""The headings of hardware."""


class FieldPicker(FilteredList):
    """Leaves with the text of a field of the problem."""

    def __init__(self, resolved: ResolvedProblem) -> None:
        super().__init__()
        self.resolved = resolved


class DtypePicker(FieldPicker):
    """Every dtype, the usual ones first."""

    title_text = "Dtype of the arrays"
    nothing = "No dtype has this name."

    def on_mount(self) -> None:
        usual = PROBLEM_FIELDS["dtype"].usual
        others = [name for name, bits in BITS.items() if bits and name not in usual]
        rows = [self._row(name, "usual") for name in usual]
        rows += [self._row(name, "all others") for name in others]
        self.show_rows(rows, self.resolved.draft.dtype)

    def _row(self, name: str, heading: str) -> ListRow:
        size = plural(BITS[name], "bit") if BITS[name] % 8 else plural(BITS[name] // 8, "byte")
        line = _named(name, size)
        return ListRow(line, f"{line.plain} {' '.join(other_names(name))}", name, Text(heading, "bold"))

    def about(self, row: ListRow) -> Text:
        machine, name = self.resolved.machine, row.value
        said = Text.assemble((f"{name}\n", "bold"), f"{machine.chip}: {peak_words(machine, name)}.")
        if names := other_names(name):
            said.append(f"\nAlso {', '.join(names)}.")
        return said


class MachinePicker(FieldPicker):
    """All hardware with as many devices as the mesh; what is typed may be any other, or a machine file."""

    title_text = "Machine for the times"
    placeholder = "type to find, or another: 2*v5e:4x4, FILE.toml"
    nothing = "No machine has this name."

    def on_mount(self) -> None:
        own = _named("by target", "that of the first target, else v5e rings")
        rows = [_machine_row(machine) for machine in machines_of_size(self.resolved.problem.mesh.size)]
        self.show_rows([ListRow(own, own.plain, ""), *rows], self.resolved.draft.machine)

    def row_of(self, typed: str) -> ListRow | None:
        if typed.endswith(".toml"):
            return ListRow(_named(typed, "a machine file"), typed, typed)
        return _typed_machine(typed)

    def about(self, row: ListRow) -> Text:
        named = cluster_named(row.value) if row.value and not row.value.endswith(".toml") else None
        return machine_words(named or self.resolved.machine)


class TargetPicker(FieldPicker):
    """The compilers to ask: `enter` asks one more, or one that is asked no longer."""

    title_text = "Compilers to ask"
    placeholder = "type to find, or another: v5p:4x4x8, h100:2x8"
    nothing = "No compiler has this name."

    def __init__(self, resolved: ResolvedProblem) -> None:
        super().__init__(resolved)
        self._asked = [target.name for target in resolved.targets]

    def on_mount(self) -> None:
        hardware = [target.machine for target in self.resolved.targets if target.machine is not None]
        machines = [*hardware, *machines_of_size(self.resolved.problem.mesh.size)]
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
        size, extra = self.resolved.problem.mesh.size, EXTRAS[target.process]
        if target.machine.devices != size:
            said.append(f"\nThe mesh has {plural(size, 'device')}.")
        if not extra.installed:
            said.append(f"\nNot installed: {extra.command}" if extra.installable else "\nNot on this system.")
        return said

    def leave_with(self, row: ListRow) -> None:
        others = [name for name in self._asked if name != row.value]
        self.dismiss(",".join(others if row.value in self._asked else [*others, row.value]) or "none")


PICKERS: dict[str, type[FieldPicker]] = {
    "dtype": DtypePicker,
    "machine": MachinePicker,
    "targets": TargetPicker,
}
"""The lists by the field whose values they are."""


def _named(name: str, what: str) -> Text:
    return Text.assemble((f"{name:<{NAME_WIDTH}} ", "bold"), (what, "dim"))


def _machine_row(machine: Machine) -> ListRow:
    line, kind = _named(machine.name, machine.family.size_words()), KINDS[machine.family.process]
    return ListRow(line, f"{line.plain} {CHIPS[machine.chip].device_kind}", machine.name, kind)


def _typed_machine(typed: str) -> ListRow | None:
    named = cluster_named(typed)
    return None if named is None else _machine_row(named)
