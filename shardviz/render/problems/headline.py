"""The problem, or a collective of its own, on one line, cut so that what matters most stays."""

from __future__ import annotations

from rich.text import Text

from shardviz.drafts.form import FieldError
from shardviz.drafts.resolve import ResolvedProblem
from shardviz.drafts.summary import SummaryPart, collective_summary, summary
from shardviz.render.palette import Palette
from shardviz.render.sanitize import printable
from shardviz.sharding import Mesh

WIDE = 80
"""Columns from which on the parts stand further apart."""
MORE = "…"
LEAST = 12
"""Columns that a part has at least."""


def headline(scene: ResolvedProblem, width: int, palette: Palette, of_collective: bool = False) -> Text:
    """``bd,df->bf   XY,Y_->X_   X=2 Y=4   bf16   shardy,cpu`` in at most `width` columns.

    `of_collective`: ``all_gather   i=4   3,9,5,2   ring`` instead, where there is a collective of its own. A
    draft with faults has the line of the last one without, and the fields that are wrong at the end.
    """
    said = _complaint(scene)
    gap = " " * (3 if width >= WIDE else 2)
    parts = (of_collective and collective_summary(scene)) or summary(scene)
    line = _cut(parts, scene.problem.mesh, width - (said.cell_len + len(gap) if said else 0), gap, palette)
    if said:
        line.append(" " * max(width - line.cell_len - said.cell_len, 0)).append_text(said)
        line.truncate(width, overflow="ellipsis")
    return line


def chain_lines(scene: ResolvedProblem, palette: Palette) -> list[Text]:
    """A chain of einsums with its specs, one einsum a line, however long; no line for one alone."""
    mesh = scene.problem.mesh
    texts = {part.kind: _part_text(part, mesh, palette, len(part.text)) for part in summary(scene)}
    written = [texts[kind].split("; ") for kind in ("einsum", "specs") if kind in texts]
    if len(written[0]) < 2:
        return []
    widest = max(text.cell_len for text in written[0])
    lines = []
    for number, (einsum, *specs) in enumerate(zip(*written, strict=True), 1):
        einsum.pad_right(widest - einsum.cell_len)
        lines.append(Text("   ").join([Text(str(number)), einsum, *specs]))
    return lines


def _cut(parts: tuple[SummaryPart, ...], mesh: Mesh, width: int, gap: str, palette: Palette) -> Text:
    """As many parts as fit, each cut to a third of the line if not all do."""
    texts = [_part_text(part, mesh, palette, width) for part in parts]
    if sum(text.cell_len + len(gap) for text in texts) - len(gap) > width:
        for text in texts:
            text.truncate(max(width // 3, LEAST), overflow="ellipsis")
    line = Text()
    for number, text in enumerate(texts):
        rest = len(gap) + len(MORE) if number + 1 < len(texts) else 0
        if number and line.cell_len + len(gap) + text.cell_len + rest > width:
            return line.append(f"{gap}{MORE}")
        line.append(gap * bool(number)).append_text(text)
    return line


def _part_text(part: SummaryPart, mesh: Mesh, palette: Palette, width: int) -> Text:
    """A part in its colours; of a span that is longer than the line no more than can be shown."""
    style = {"einsum": "bold", "collective": "bold", "mesh": "", "specs": ""}.get(part.kind, "dim")
    text = Text(style=style)
    for span in part.spans:
        shown = printable(span.text[: max(width, LEAST) + 1])
        text.append(shown, palette.axis(mesh, span.axis) if span.axis else "")
    return text


def _complaint(scene: ResolvedProblem) -> Text:
    """``✗ spec of W`` where the field is wrong, ``✗ mesh +2`` where two others are, too."""
    if not scene.faults:
        return Text()
    first, *others = scene.faults
    return Text(f"✗ {_name(first, scene)}{f' +{len(others)}' if others else ''}", "bold")


def _name(fault: FieldError, scene: ResolvedProblem) -> str:
    name, _, number = fault.field.partition(".")
    return f"spec of {scene.rows[int(number)].name}" if number else name.replace("_", " ")
