"""A problem as it is edited: its fields as rows of cells for a cursor, and all of it on one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from rich.cells import chop_cells
from rich.text import Text

from shardviz.errors import plural
from shardviz.forms.form import FLAG, PROBLEM_FIELDS, ArrayRow, FieldError, FormField
from shardviz.forms.parsing import Spec, parsed
from shardviz.forms.resolve import ResolvedProblem
from shardviz.forms.retain_fields import sizes_text
from shardviz.forms.summary import SummaryPart, collective_summary, summary
from shardviz.forms.wording import as_sentence
from shardviz.notation.spec_string import write_spec
from shardviz.render.caption import devices_text
from shardviz.render.lines import GAP, cut, printable, sentence
from shardviz.render.palette import DIM, SIGNS, Palette
from shardviz.sharding import Mesh
from shardviz.units import human_bytes

GUTTER = 2
"""Columns before the labels, in which the cursor's line has its mark."""
MARK = "›"
LABELS = 8
MAX_LINES = 5
"""Lines that one text takes at most; all of it is there when it is edited."""
Kind = Literal["text", "axis", "array", "dim", "sums", "choice"]
BESIDE_THE_PROBLEM = ("targets", "collective")
"""Fields that say nothing about the arrays."""


class FieldPlace(NamedTuple):
    """Columns `left` to `right` of line `y`, which a cell has. A long text has a place on each line."""

    cell: FieldCell
    y: int
    left: int
    right: int


class Typing(NamedTuple):
    """Typing into a field: its value is left blank, and notes on the text stand below, in at least `lines`
    lines, so that the fields below do not jump at each key."""

    field: str
    faults: tuple[FieldError, ...] = ()
    hint: str = ""
    lines: int = 0


class FieldsPicture:
    """A canvas of rows of cells, `width` columns wide, with blank lines between groups if `height` allows.
    `cursor` is the cell that stands out; changing it needs no new picture. What is being typed is on line
    `typing_line` from `value_column` on, with `typing_notes` lines of notes below."""

    def __init__(
        self,
        rows: Sequence[FieldRow],
        width: int,
        height: int,
        mesh: Mesh,
        palette: Palette,
        typing: Typing | None = None,
    ) -> None:
        self.width = width
        self.cursor: FieldCell | None = None
        self.has_focus = True
        names = [len(row.cells[0].text) + 1 for row in rows if row.is_array]
        self.value_column = GUTTER + min(max([LABELS, *names]), 14)
        self._mesh, self._palette, self._typing = mesh, palette, typing
        for has_gaps in (True, False):
            self.places: list[FieldPlace] = []
            self.typing_line = self.typing_notes = 0
            self._lines: list[Text] = []
            for number, row in enumerate(rows):
                if has_gaps and number and row.group != rows[number - 1].group:
                    self._lines.append(Text())
                self._draw(row)
            if len(self._lines) <= height:
                break
        self.height = len(self._lines)

    def line(self, y: int, left: int, right: int) -> Text:
        """Columns `left` to `right` of a line, with the cursor if it is there."""
        line = self._lines[y]
        here = [place for place in self.places if place.y == y and place.cell == self.cursor]
        if here:
            line = line.copy()
            for place in here:
                line.stylize("reverse not dim" if self.has_focus else "underline", place.left, place.right)
            is_first = here[0] == next(place for place in self.places if place.cell == self.cursor)
            line = Text(MARK if self.has_focus and is_first else " ") + line[1:]
        return line[left:right] if left or line.cell_len > right else line

    def _draw(self, row: FieldRow) -> None:
        cells = list(row.cells)
        if row.is_array:
            name = self._text(cells[0])
            name.truncate(self.value_column - GUTTER - 1, overflow="ellipsis")
            line = self._begin(name, cells.pop(0))
        else:
            line = self._begin(Text(row.label, DIM))
        if self._typing and self._typing.field == row.field:
            self.typing_line = len(self._lines)
            self._lines.append(line)
            self._explain(self._typing.faults, self._typing.hint)
            missing = self.typing_line + 1 + self._typing.lines - len(self._lines)
            self._lines += [Text() for _ in range(missing)]
            self.typing_notes = len(self._lines) - self.typing_line - 1
            return
        line = self._put(line, cells)
        # The first remark that fits, or the last one below.
        room = self.width - line.cell_len - GAP
        remark = next((each for each in row.remarks if not each or len(each) <= room), None)
        if remark is None and row.remarks:
            remark, line = row.remarks[-1], self._wrap(line)
        if remark:
            line.append(" " * max(self.width - line.cell_len - len(remark), 0)).append(remark, DIM)
        self._lines.append(line)
        self._explain(row.faults)

    def _begin(self, label: Text, cell: FieldCell | None = None) -> Text:
        if cell:
            self.places.append(FieldPlace(cell, len(self._lines), GUTTER, GUTTER + len(label)))
        line = Text(" " * GUTTER).append_text(label)
        line.pad_right(self.value_column - line.cell_len)
        return line

    def _put(self, line: Text, cells: Sequence[FieldCell]) -> Text:
        """Cells side by side, on as many lines as they need; the last line is given back."""
        is_first = True
        for cell in cells:
            for piece in self._pieces(cell):
                if not is_first and line.cell_len + GAP + piece.cell_len > self.width:
                    line = self._wrap(line)
                elif not is_first:
                    line.append(" " * GAP)
                is_first = False
                self.places.append(FieldPlace(cell, len(self._lines), len(line), len(line) + len(piece)))
                line.append_text(piece)
        return line

    def _wrap(self, line: Text) -> Text:
        self._lines.append(line)
        return Text(" " * self.value_column)

    def _explain(self, faults: Sequence[FieldError], hint: str = "") -> None:
        lines = [] if faults else sentence(hint, self.width, GUTTER + GAP, style=DIM)
        for fault in faults:
            message, hint = (printable(as_sentence(text)) for text in (fault.message, fault.hint))
            lines += sentence(message, self.width, GUTTER, "✗ ", "bold")
            lines += sentence(hint, self.width, GUTTER + GAP, style=DIM)
        for line in lines:
            # Letters of two columns may need a cut besides those between words.
            cuts = accumulate(map(len, chop_cells(line.plain, self.width)))
            self._lines += line.divide([cut for cut in cuts if cut < len(line)])

    def _pieces(self, cell: FieldCell) -> Iterator[Text]:
        text, room = self._text(cell), self.width - self.value_column
        for number in range(MAX_LINES):
            if text.cell_len <= room:
                yield text
                return
            stop = len(chop_cells(text.plain, room)[0])
            if number == MAX_LINES - 1:
                yield text[: stop - 1].append("…")
                return
            index = max(text.plain.rfind(char, stop // 2, stop) for char in " ,;") + 1
            yield text[: index or stop]
            text = text[index or stop :]

    def _text(self, cell: FieldCell) -> Text:
        if cell.kind == "array":
            return Text(printable(cell.text), "bold")
        # An order of 65,536 devices is long: no more of it than can be shown.
        shown = printable(cell.text[: MAX_LINES * self.width])
        text = Text(shown, DIM if cell.is_default else "")
        between = "," if any(len(axis) > 1 for axis in cell.axes) else ""
        is_braced = between and cell.kind == "dim"
        axes = (Text(axis, self._palette.axis(self._mesh, axis)) for axis in cell.axes)
        text.append("{" if is_braced else "").append_text(Text(between).join(axes))
        text.append("}" if is_braced else "")
        style = self._palette.axis(self._mesh, cell.axes[0]) if cell.kind == "axis" else ""
        return text.append(cell.after, style)


class FieldCell(NamedTuple):
    """One place for the cursor, of a field named as in `FieldError.field`: a "text" is a whole field, an
    "axis" the mesh's axis `number`, an "array" a name, a "dim" dimension `number`, "sums" the axes of a
    pending sum, "choice" what the compiler may decide. It reads `text`, the mesh axes `axes`, `after`;
    `is_default` where nobody typed it."""

    kind: Kind
    field: str
    number: int
    text: str
    axes: tuple[str, ...] = ()
    after: str = ""
    is_default: bool = False

    @property
    def row(self) -> int:
        """The number of the array, counted over all operands and results."""
        return int(self.field.removeprefix("specs."))


class FieldRow(NamedTuple):
    """A field with its cells, in the group of fields that belong together. An array has no `label`: its name
    is a cell. The row ends with the first of `remarks` that fits there, or below it the last."""

    field: str
    group: int
    label: str
    cells: tuple[FieldCell, ...]
    remarks: tuple[str, ...] = ()
    faults: tuple[FieldError, ...] = ()

    @property
    def is_array(self) -> bool:
        return self.field.startswith("specs.")


def field_rows(scene: ResolvedProblem) -> list[FieldRow]:
    """Every field of the draft of a scene, in the order in which they are shown."""
    draft, scene = scene.draft, scene.stated
    # The machine where none is named: the rule of `shardviz.targets.hardware.machine_for`, by name.
    known, count = ((target.name, target.machine) for target in scene.targets), scene.problem.mesh.size
    fitting = (name for name, machine in known if machine is not None and machine.devices == count)
    usual = {"sizes": sizes_text(scene.problem.sizes), "machine": next(fitting, "v5e rings, assumed")}
    named = {name: PROBLEM_FIELDS[name]._replace(empty=text) for name, text in usual.items()}
    fields = PROBLEM_FIELDS | named
    hidden = {"mesh"} if draft.backward == FLAG else {"mesh", "remat", "optimizer", "frozen"}
    texts = [_text_row(field, getattr(draft, name)) for name, field in fields.items() if name not in hidden]
    if scene.problem.padding and not scene.faults:
        padded = ", ".join(f"{dim.dim} padded to {dim.padded:,}" for dim in scene.problem.padding)
        texts = [row._replace(remarks=(padded,)) if row.field == "sizes" else row for row in texts]
    mesh_row = _text_row(PROBLEM_FIELDS["mesh"], draft.mesh)
    if (mesh := parsed(draft).mesh) is not None:
        axes = enumerate(mesh.shape.items())
        cells = tuple(FieldCell("axis", "mesh", i, "", (name,), f"={size}") for i, (name, size) in axes)
        # The last remark needs no line of its own: then no field moves when the mesh grows.
        mesh_row = FieldRow("mesh", 0, "mesh", cells, (plural(mesh.size, "device"), f"= {mesh.size:,}", ""))
    rows = [mesh_row, *texts, *_array_rows(scene)]
    rows.sort(key=lambda row: row.group)
    return [
        row._replace(faults=tuple(fault for fault in scene.faults if fault.field == row.field))
        for row in rows
    ]


def mesh_in(scene: ResolvedProblem) -> Mesh:
    """The mesh of the draft, or the last valid one."""
    return parsed(scene.draft).mesh or scene.problem.mesh


def _text_row(field: FormField, text: str) -> FieldRow:
    cell = FieldCell("text", field.name, 0, text or field.empty, is_default=not text)
    return FieldRow(field.name, field.group, field.label, (cell,))


def _array_rows(scene: ResolvedProblem) -> list[FieldRow]:
    draft, problem = scene.draft, scene.problem
    specs = parsed(draft).specs
    remarks: list[tuple[str, ...]] = [()] * len(specs)
    if not any(fault.field not in BESIDE_THE_PROBLEM for fault in scene.faults):
        # The statements of a chain have the arrays of the rows; those of a program have more.
        shown = [array for part in problem.forward for array in part.arrays]
        if [array.name for array in shown] != [row.name for row in scene.rows]:
            by_name = {array.name: array for array in reversed(shown)}
            shown = [by_name[row.name] for row in scene.rows]
        remarks = [
            () if array.spec is None else (human_bytes(array.bytes_per_device(problem.mesh)),)
            for array in shown
        ]
    return [
        FieldRow(f"specs.{number}", 2, "", _array_cells(number, row, spec), remark)
        for number, (row, spec, remark) in enumerate(zip(scene.rows, specs, remarks, strict=True))
    ]


def _array_cells(number: int, row: ArrayRow, spec: Spec) -> tuple[FieldCell, ...]:
    field = f"specs.{number}"
    name = FieldCell("array", field, 0, f"→ {row.name}" if row.role == "result" else row.name)
    if spec is None:
        return name, FieldCell("choice", field, 0, "compiler's choice", is_default=True)
    if isinstance(spec, str) or spec.rank != len(row.dims):
        return name, FieldCell("text", field, 0, spec if isinstance(spec, str) else write_spec(spec))
    # The dimensions as the scaling book writes them, ``b_XY d f_{data,model}``, then ``{U_Z}``.
    cells = [
        FieldCell("dim", field, i, dim + ("_" if axes else ""), axes)
        for i, (dim, axes) in enumerate(zip(row.dims, spec.dims, strict=True))
    ]
    if spec.unreduced:
        cells.append(FieldCell("sums", field, 0, "{U_", spec.unreduced, "}"))
    if spec.devices:
        cells.append(FieldCell("text", field, 0, devices_text(spec.devices)))
    if not row.dims:
        cells.append(FieldCell("text", field, 0, "scalar", is_default=True))
    return name, *cells


WIDE = 80
"""The fewest columns in which the parts stand further apart."""
LEAST = 12
"""Columns that a part has at least."""


def headline(scene: ResolvedProblem, width: int, palette: Palette, of_collective: bool = False) -> Text:
    """``bd,df->bf XY,Y_->X_ X=2 Y=4 bf16 shardy,cpu``, or `of_collective` ``all_gather i=4 3,9,5,2 ring``, in
    `width` columns at most. A draft with faults has the last line without, and the wrong fields."""
    said = Text("planning …" if scene.planning is not None and not scene.is_as_given else "", DIM)
    if scene.faults:  # ``✗ spec of W``, ``✗ mesh +2`` where two others are wrong, too
        field, _, number = scene.faults[0].field.partition(".")
        name = f"spec of {scene.rows[int(number)].name}" if number else field.replace("_", " ")
        more = f" +{len(scene.faults) - 1}" * (len(scene.faults) > 1)
        said = Text.assemble(("✗", SIGNS["✗"]), (f" {name}{more}", "bold"))
    scene = scene.stated
    gap = " " * (3 if width >= WIDE else 2)
    parts = (of_collective and collective_summary(scene)) or summary(scene)
    room = width - (said.cell_len + len(gap) if said else 0)
    line = parts_line(parts, scene.problem.mesh, room, palette, gap)
    if said:
        line.append(" " * max(width - line.cell_len - said.cell_len, 0)).append_text(said)
    return cut(line, width)


def chain_lines(scene: ResolvedProblem, palette: Palette) -> list[Text]:
    """A chain with its specs, one einsum a line; none for one alone. Named specs stand below a program."""
    mesh = scene.problem.mesh
    texts = {part.kind: _part_text(part, mesh, palette, len(part.text)) for part in summary(scene)}
    written = [texts[kind].split("; ") for kind in ("einsum", "specs") if kind in texts]
    if len(written[0]) < 2:
        return []
    statements, *specs = written
    named = [name for text in specs for name in text[0].split(", ") if len(text) != len(statements)]
    beside = [text for text in specs if len(text) == len(statements)]
    widest = max(text.cell_len for text in statements)
    lines = []
    for number, (statement, *its_specs) in enumerate(zip(statements, *beside, strict=True), 1):
        statement.pad_right(widest - statement.cell_len)
        lines.append(Text("   ").join([Text(str(number)), statement, *its_specs]))
    return [*lines, *(Text("    ") + name for name in named)]


def parts_line(
    parts: tuple[SummaryPart, ...], mesh: Mesh, width: int, palette: Palette, gap: str = "  "
) -> Text:
    """As many parts as fit, each cut to a third of the line if not all do."""
    texts = [_part_text(part, mesh, palette, width) for part in parts]
    if sum(text.cell_len + len(gap) for text in texts) - len(gap) > width:
        for text in texts:
            text.truncate(max(width // 3, LEAST), overflow="ellipsis")
    line = Text()
    for number, text in enumerate(texts):
        rest = len(gap) + 1 if number + 1 < len(texts) else 0
        if number and line.cell_len + len(gap) + text.cell_len + rest > width:
            return line.append(f"{gap}…")
        line.append(gap * bool(number)).append_text(text)
    return line


def _part_text(part: SummaryPart, mesh: Mesh, palette: Palette, width: int) -> Text:
    style = {"einsum": "bold", "collective": "bold", "mesh": "", "specs": ""}.get(part.kind, "dim")
    text = Text(style=style)
    for span in part.spans:
        shown = printable(span.text[: max(width, LEAST) + 1])
        text.append(shown, palette.axis(mesh, span.axis) if span.axis else "")
    return text
