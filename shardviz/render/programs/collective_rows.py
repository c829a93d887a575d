"""Collectives as rows: what moves, how much, over which axes, when, and by which algorithm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.style import Style
from rich.text import Text

from shardviz.compare.comparison import under_way
from shardviz.errors import plural
from shardviz.hlo import Collective, CollectiveMatmul
from shardviz.hlo.collective import Total, by_permute
from shardviz.render.caption import axes_text, group_along, marked_group
from shardviz.render.lines import printable_line, sentence
from shardviz.render.palette import Palette
from shardviz.render.tables import columns, records
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import axis_part
from shardviz.units import exact_bytes, human_bytes

FLUSH = ("", "", ">", ">")
"""The head of a table of rows, which has no words."""
MAX_GROUPS = 2
NARROW = 60
"""On fewer columns all numbers and words of a collective follow one another: they take fewer lines."""


@dataclass(frozen=True)
class CollectiveRow:
    """One line of a table of collectives: the op and its axes, `moves` (operand and result on a device), the
    bytes, those sent (None if unknown), how `often` and `when` it runs, and the `algorithm`."""

    operation: Text
    moves: str
    bytes: int
    wire_bytes: int | None
    often: str
    when: str
    algorithm: str

    @property
    def cells(self) -> list[Text]:
        sent = "" if self.wire_bytes is None else f"{self.wire_bytes:,} sent"
        return [
            self.operation,
            Text(self.moves),
            Text(exact_bytes(self.bytes)),
            Text(sent, "dim"),
            Text(self.often),
        ]

    @property
    def sent(self) -> str:
        return "" if self.wire_bytes is None else human_bytes(self.wire_bytes)

    @property
    def how(self) -> str:
        return "; ".join(words for words in (self.when, self.algorithm) if words)


NO_AXES = Mesh(("devices",), (1,))
"""In place of a mesh that nobody knows: its axes are asked for no colour."""


def rows_of(
    collectives: Sequence[Collective], mesh: Mesh, palette: Palette, matmuls: Sequence[CollectiveMatmul] = ()
) -> list[CollectiveRow]:
    """One row a collective. Equal ones in a row share one, and so do the permutes of each of `matmuls`."""
    parts = by_permute(matmuls)
    rings = Counter(name for matmul in matmuls for name in matmul.permutes)
    seen, rows = [], []
    for same in folded(collectives, parts):
        one = same[0]
        matmul = parts.get(one.name)
        if matmul is None:
            operation, sizes = Text.assemble((one.op, "bold")), (one.bytes, one.wire_bytes)
            if one.axes:
                operation.append(" over ").append_text(axes_text(one.axes, mesh, palette))
            elif members := members_text(one, MAX_GROUPS):
                operation.append(f" {members}")
            operation.append(way_out(one))
            rows.append(CollectiveRow(operation, shapes(one), *sizes, often(same), when(one), one.algorithm))
        elif matmul not in seen:
            seen.append(matmul)
            shared = sum(rings[name] > 1 for name in matmul.permutes)
            rows.append(_taken_apart(matmul, shared, collectives, mesh, palette))
    return rows


def row_lines(rows: Sequence[CollectiveRow], width: int, tells_how: bool) -> list[Text]:
    """A line for each row, and below it, if `tells_how`, when it runs and by which algorithm."""
    aligned = columns([row.cells for row in rows], width, 2, FLUSH)
    lines: list[Text] = []
    for number, row in enumerate(rows):
        lines += records([row.cells], width, 2) if aligned is None else [aligned[number]]
        lines += sentence(row.how, width, 4, style="dim") if tells_how else []
    return lines


def folded(collectives: Sequence[Collective], apart: Iterable[str] = ()) -> list[list[Collective]]:
    """Collectives that read alike, and come one after the other, together; those named in `apart` alone."""
    names = frozenset(apart)

    def read(one: Collective) -> tuple[object, ...]:
        """All that a row says of a collective but how often it runs."""
        name, sizes = one.name if one.name in names else "", (one.bytes, one.wire_bytes, one.arrays)
        how = shapes(one), one.algorithm, way_out(one), when(one)
        return name, one.op, one.axes, one.groups, sizes, how, one.count is None

    return [[*run] for _, run in groupby(collectives, read)]


def often(alike: Sequence[Collective]) -> str:
    """The runs of collectives that read alike: ``×4``; "" for once. One unknown loop makes all unknown."""
    counts = [collective.count for collective in alike if collective.count is not None]
    if len(counts) < len(alike):
        return "in a loop" if len(alike) == 1 else f"{len(alike):,} of these in loops"
    return f"×{sum(counts):,}" if sum(counts) != 1 else ""


def has_schedule(compiled: TargetResult) -> bool:
    """True for a program in the order in which it runs; Shardy's is not."""
    return compiled.status == "ok" and compiled.target != "shardy"


def shapes(collective: Collective) -> str:
    """``bf16[4,8192]``, ``bf16[4,512]→[4,2048]`` where the shape changes; ``and 2 more arrays``."""
    operand, result = (
        f"[{','.join(map(str, shape))}]" for shape in (collective.operand_shape, collective.result_shape)
    )
    text = f"{collective.dtype}{operand}" + (f"→{result}" if operand != result else "")
    return text if collective.arrays == 1 else f"{text} and {plural(collective.arrays - 1, 'more array')}"


def when(collective: Collective) -> str:
    """``synchronous``, ``under 2 matmuls, ~52,626 cycles``; then where it stands among the matmuls."""
    where, order = "", collective.matmul_order
    if order is not None and order.matmuls == 1:
        where = f"{'after' if order.before else 'before'} the matmul"
    elif order is not None and order.matmuls:
        place = f"between matmuls {order.before:,} and {order.before + 1:,}"
        ends = {0: "before matmul 1", order.matmuls: f"after matmul {order.before:,}"}
        where = ends.get(order.before, place)
    if not collective.is_async:
        return f"synchronous, {where}" if where else "synchronous"
    busy = under_way(collective.overlapped)
    words = f"under {busy}" if busy else "asynchronous, nothing overlaps"
    return f"{words}, begun {where}" if where else words


def _taken_apart(
    matmul: CollectiveMatmul, shared: int, collectives: Sequence[Collective], mesh: Mesh, palette: Palette
) -> CollectiveRow:
    """The permutes of a collective matmul as one row; `shared` of them are others' as well."""
    permutes = [collective for collective in collectives if collective.name in matmul.permutes]
    text = Text.assemble((f"{matmul.op} by permutes", "bold"))
    if matmul.axes:
        text.append(" over ").append_text(axes_text(matmul.axes, mesh, palette))
    ways = "both ways" if matmul.directions == 2 else "one way"
    steps = f"{plural(len(matmul.permutes), 'permute')} {ways}" + f", {shared:,} shared" * (shared > 0)
    algorithms = dict.fromkeys(permute.algorithm for permute in permutes if permute.algorithm)
    works = {work.name: work.cycles or 0 for permute in permutes for work in permute.overlapped}
    under = [name for name in matmul.matmuls if name in works]
    count, cycles = plural(len(matmul.matmuls), "partial matmul"), sum(works[name] for name in under)
    some = f"{len(under):,} of " if len(under) < len(matmul.matmuls) else ""
    runs = f"under {some}{count}" + f", ~{cycles:,} cycles" * bool(cycles) if under else f"between {count}"
    sizes = matmul.bytes, matmul.wire_bytes
    return CollectiveRow(text, steps, *sizes, "", runs, "; ".join(algorithms))


def way_out(one: Collective | Total) -> str:
    """`` between slices``, `` to the host``, `` from the host``; "" for what stays on a slice's links."""
    if one.is_host_transfer:
        return " to the host" if one.op == "send" else " from the host"
    return " between slices" * one.between_slices


def facts(collective: Collective, mesh: Mesh, palette: Palette) -> Text:
    """The end of a collective's line: ``  over X  2 MiB  ×2``."""
    text = Text()
    if collective.axes:
        text.append("  over ").append_text(axes_text(collective.axes, mesh, palette))
    if beyond := way_out(collective):
        text.append(f" {beyond}")
    text.append(f"  {human_bytes(collective.bytes)}")
    if collective.count != 1:
        text.append("  in a loop" if collective.count is None else f"  ×{collective.count:,}", "bold")
    return text


def collective_style(collective: Collective, mesh: Mesh, palette: Palette) -> Style:
    """The colour of a collective: that of the first of its axes."""
    return palette.axis(mesh, collective.axes[0]) if collective.axes else Style(bold=True)


def members_text(collective: Collective, most: int) -> str:
    """At most `most` of its groups: ``{0,1} {2,3} +6``, ``{0→1} {1→2} +6`` for a permute, ``{0,4,…,60}``. Of
    groups that are too many to list, ``in 65,536 groups of 16``."""
    pairs, groups = collective.op == "collective-permute", collective.groups
    if groups is None:
        count = plural(collective.group_count, "pair" if pairs else "group")
        size = "" if pairs else f" of {collective.group_size:,}"
        return f"in {count}{size}" if collective.group_count else ""
    shown, more = [], len(groups) - most
    for group in groups[:most]:
        ids = group if len(group) <= 4 else (*group[:2], "…", group[-1])
        shown.append(f"{{{('→' if pairs else ',').join(map(str, ids))}}}")
    return " ".join(shown) + f" +{more:,}" * (more > 0)


def members_with(collective: Collective, mesh: Mesh, position: int, palette: Palette) -> Text:
    """Its groups with a position's device: ``{1,▹5◃}``, ``{1→▹5◃} {▹5◃→1}``; empty where nothing tells."""
    device, groups = mesh.device_id(position), collective.groups
    if groups is None:
        return group_along(collective.axes, mesh, position, palette) if collective.axes else Text()
    separator = "→" if collective.op == "collective-permute" else ","
    own = (group for group in groups if device in group)
    return Text(" ").join(marked_group(group, device, palette, separator) for group in own)


def collective_details(
    collective: Collective, compiled: TargetResult, mesh: Mesh, width: int, palette: Palette, lens: int | None
) -> list[Text]:
    """Its row, when it runs, its groups, that of the marked device, its source, and what runs meanwhile."""
    (row,) = rows_of([collective], mesh, palette)
    op, shapes, *sizes = (cell for cell in row.cells if cell.plain)
    said = [when(collective) * has_schedule(compiled), collective.algorithm]
    how = "; ".join(filter(None, said))
    if width < NARROW:
        lines = records([[op, *sizes, Text(how), shapes]], width)
    else:
        lines = [*records([[op, *sizes, shapes]], width), *sentence(how, width)]
    if collective.axes and (members := members_text(collective, 8 if width > 60 else 2)):
        lines += sentence(members, width, lead="devices " if collective.groups else "")
    if lens is not None and (marked := members_with(collective, mesh, lens, palette)):
        lines += records([[Text.assemble("group ", marked)]], width)
    lines += sentence(collective.source, width, lead="from " if collective.source else "")
    names = [f"{work.name} ({work.op})" for work in collective.overlapped[:6]]
    if more := len(collective.overlapped) - len(names):
        names.append(f"{more:,} more")
    lines += sentence(", ".join(names), width, lead="meanwhile " if names else "")
    return [printable_line(line) for line in lines]


def parts_of_axes(collectives: Iterable[Collective], mesh: Mesh | None) -> list[str]:
    """A sentence on each part of an axis that collectives run along, as far as they are few."""
    names = dict.fromkeys(axis for collective in collectives for axis in collective.axes)
    return [words for name in names if mesh and (words := part_of_axis(name, mesh))][:3]


def part_of_axis(axis: str, mesh: Mesh) -> str:
    """``X:(2)8 is a part of X: X=16 is 2×8, and 8 is its inner factor``; "" for a whole axis."""
    part = axis_part(axis)
    if part is None or part.axis not in mesh.axis_names:
        return ""
    name, above, size = part
    whole, below = mesh.axis_size(name), mesh.stride(axis) // mesh.stride(name)
    factors = "×".join(str(factor) for factor in (above, size, below) if factor > 1)
    position = "outer" if above == 1 else "inner" if below == 1 else "middle"
    return f"{axis} is a part of {name}: {name}={whole} is {factors}, and {size} its {position} factor"
