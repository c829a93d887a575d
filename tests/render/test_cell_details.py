"""A cell in words."""

from __future__ import annotations

from textwrap import dedent

import pytest

from shardviz.hardware.placement import DeviceCoords, Placement
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.notations import read_sharding
from shardviz.notation.reading import Context
from shardviz.render.layouts.cells import BlockCells, CellIndex, DeviceCells
from shardviz.render.layouts.layout_view import DevicePlacement, cell_details, device_lines
from shardviz.render.palette import TRUECOLOR
from shardviz.sharding import Layout, ShardedArray


def cells_of(kind, shape, spec, mesh="X=2,Y=4"):
    where = parse_mesh(mesh)
    reading = read_sharding(spec, Context(where, len(shape)))
    array = ShardedArray(reading.name, reading.dim_names, shape, "bf16", reading.spec)
    return kind(Layout(array, where), TRUECOLOR)


V5E = DevicePlacement(
    "v5e:2x4",
    Placement(
        (0, 1, 3, 2, 4, 5, 7, 6),
        tuple(DeviceCoords((i // 4, i % 4)) for i in range(8)),
        (2, 4),
        (False, False),
    ),
)
NODES = DevicePlacement(
    "h100:2x4",
    Placement(
        tuple(range(8)), tuple(DeviceCoords((), i % 4, i // 4) for i in range(8)), within="gpu", unit="node"
    ),
)
CORES = DevicePlacement(
    "2*v2:2x1",
    Placement(
        tuple(range(8)),
        tuple(DeviceCoords((i // 2 % 2, 0), i % 2, i // 4) for i in range(8)),
        (2, 1),
        (False, False),
    ),
)
SPLIT = ((1024, 2048), "A[b_X, d_Y]")
COPIED = ((2048, 8192), "W[d_Y, f]")
PENDING = ((1024, 8192), "Out[b, f]{U_Y}")

WORDS = [
    (
        "one device",
        (BlockCells, *SPLIT, CellIndex(0, 1, 2), 84, [V5E, NODES, CORES]),
        """
         η  A     b 512:1024, d 1024:1536  512×512 of 1024×2048 bf16  512 KiB
        device    6  X1 Y2
        v5e:2x4   chip x1 y2 (device 7)
        h100:2x4  GPU 2 of node 1
        2*v2:2x1  chip x1 y0 core 0 slice 1
        """,
    ),
    (
        "copies",
        (BlockCells, *COPIED, CellIndex(0, 1, 0), 84, [V5E]),
        """
         β  W    d 512:1024, f 0:8192  512×8192 of 2048×8192 bf16  8 MiB
        devices  1, 5  X0–1 Y1  2 copies
        v5e:2x4  x0 y1  x1 y1
        """,
    ),
    (
        "copies, by device",
        (DeviceCells, *COPIED, CellIndex(0, 1, 1), 40, []),
        """
         β  W    d 512:1024, f 0:8192
                 512×8192 of 2048×8192 bf16
                 8 MiB
        device   5  X1 Y1
        also on  1  2 copies
        """,
    ),
    (
        "partial sums",
        (BlockCells, *PENDING, CellIndex(0, 0, 0), 84, []),
        """
         α  Out  b 0:1024, f 0:8192  1024×8192 bf16  16 MiB
        mesh     X0–1 Y0–3
        holds    4 partial sums over Y
        the sum  (0,4)+(1,5)+(2,6)+(3,7)
        ╱ Out is unreduced over Y: each block is the sum of 4 partial sums, one on each of
        the devices joined by +.
        """,
    ),
    (
        "one partial sum",
        (DeviceCells, *PENDING, CellIndex(0, 1, 2), 100, []),
        """
         α  Out  b 0:1024, f 0:8192  1024×8192 bf16  16 MiB
        device   6  X1 Y2
        also on  2  2 copies
        holds    partial sum 3 of 4 over Y
        the sum  (0,4)+(1,5)+(2,6)+(3,7)
        ╱ Out is unreduced over Y: each block is the sum of 4 partial sums, one on each of the devices
        joined by +.
        """,
    ),
    (
        "padding",
        (BlockCells, (10,), "A[b_Y]", CellIndex(0, 0, 3), 100, []),
        """
         δ  A    b 9:10  1 of 10 bf16, padded to 3  6 B
        devices  3, 7  X0–1 Y3  2 copies
        ░ b of A: 10 is not divisible by the 4 shards over Y. jit pads it to 12, 3 per device; the last 2
        are padding. jax.device_put raises IndivisibleError.
        """,
    ),
]


@pytest.mark.parametrize(("asked", "expected"), [case[1:] for case in WORDS], ids=[case[0] for case in WORDS])
def test_words(asked, expected):
    kind, shape, spec, spot, width, grounds = asked
    lines = cell_details(cells_of(kind, shape, spec), spot, width, grounds)
    assert "\n".join(line.plain.rstrip() for line in lines) == dedent(expected).strip("\n")
    assert max(line.cell_len for line in lines) <= width


@pytest.mark.parametrize("kind", [BlockCells, DeviceCells])
def test_of_many_copies_the_first_and_the_last_are_told(kind):
    cells = cells_of(kind, *COPIED, "X=16384,Y=4")
    text = "\n".join(line.plain for line in cell_details(cells, CellIndex(0, 1, 0), 84))
    assert "…, 65533" in text or "…, 65532" in text
    assert "16,384 copies" in text


def test_a_device_with_all_its_arrays():
    arrays = [cells_of(DeviceCells, *SPLIT), cells_of(DeviceCells, *COPIED)]
    assert [line.plain for line in device_lines(arrays, 5, 84)] == [
        " ζ  A  b 512:1024, d 512:1024  512×512 bf16   512 KiB",
        " β  W  d 512:1024, f 0:8192    512×8192 bf16  8 MiB",
    ]
