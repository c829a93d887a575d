"""A layout exactly as `jax.debug.visualize_array_sharding(x, use_color=False)` prints it, without JAX. The
sizes follow `jax._src.debugging.visualize_sharding` (jax 0.10 to 0.12): ten lines for the whole height, 2.5
columns for each line of width, at least nine columns a block, a Rich table on 80 columns."""

from __future__ import annotations

from io import StringIO

from rich.align import Align
from rich.box import SQUARE
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shardviz.errors import QuestionError, plural
from shardviz.sharding import Layout

LINES = 10
COLUMNS_PER_LINE = 2.5
MIN_WIDTH = 9
MAX_WIDTH = 80
MAX_DEVICES = 4096
"""JAX would draw more too, for minutes."""


def jax_style(layout: Layout, device_kind: str = "CPU", width: int = MAX_WIDTH) -> str:
    """The text that JAX prints, with its last newline. `device_kind` is what JAX writes before the device
    ids: the platform's name in capitals. `width` is JAX's `max_width`. Raises `QuestionError` where JAX
    raises an error: a rank other than 1 or 2, a size that does not divide, or an array without elements."""
    _check(layout)
    ids: dict[tuple[int, ...], list[int]] = {}
    for position in filter(layout.holds_data, range(len(layout))):
        ids.setdefault(layout.block(position), []).append(layout.mesh.device_id(position))
    shape, parts = layout.array.shape, layout.parts
    table = Table(show_header=False, show_lines=True, padding=0, pad_edge=False, box=SQUARE)
    base_width = int(LINES * ((shape[1] if len(shape) == 2 else 1) / shape[0]))
    block_width = int(1 / parts[-1] * base_width * COLUMNS_PER_LINE)
    block_width = min(max(block_width, MIN_WIDTH), width)
    height = int(1 / parts[0] * LINES) if len(shape) == 2 else 1
    for row in range(parts[0] if len(shape) == 2 else 1):
        cells = []
        for column in range(parts[-1]):
            block = (row, column) if len(shape) == 2 else (column,)
            entry = f"{device_kind} {','.join(map(str, sorted(ids[block])))}"
            left, odd = divmod(block_width - len(entry) - 2, 2)
            above, odd_line = divmod(height - 2, 2)
            around = (max(above, 0), max(left + odd, 0), max(above + odd_line, 0), max(left, 0))
            cells.append(Padding(Align(Text(entry), "center", vertical="middle"), around))
        table.add_row(*cells)
    page = StringIO()
    console = Console(file=page, width=width, color_system=None, force_jupyter=False, legacy_windows=False)
    console.print(table, end="\n\n")
    return page.getvalue()


def _check(layout: Layout) -> None:
    array = layout.array
    if array.rank not in (1, 2):
        raise QuestionError(
            f"JAX draws arrays of rank 1 and 2, and {array.name} has {plural(array.rank, 'dimension')}",
            "leave out --style jax: shardviz draws any rank",
        )
    for uneven in layout.uneven:
        size = f"{array.dims[uneven.dim]}={uneven.size}"
        raise QuestionError(
            f"JAX refuses this array: {size} does not divide by {uneven.parts}",
            "leave out --style jax to see what the compiler pads",
        )
    if not array.elements:
        raise QuestionError(f"JAX cannot draw {array.name}: it has no elements", "use sizes above 0")
    if layout.mesh.size > MAX_DEVICES:
        raise QuestionError(
            f"JAX lists every device, and the mesh {layout.mesh} has {layout.mesh.size:,}",
            f"use a mesh of up to {MAX_DEVICES:,} devices, or leave out --style jax",
        )
