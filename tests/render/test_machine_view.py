"""A machine on a page: its figures, the picture of its links, and where a mesh lies."""

from __future__ import annotations

import pytest

from shardviz.hardware.chips import COMPILED, GPUS, TPUS
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import named_machine, read_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.render.machine_view import figures_table, machine_view
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.targets.hardware import target_groups


def page(name, mesh=None, width=80, palette=PLAIN, verbose=False):
    machine = named_machine(name)
    asked = None if mesh is None else parse_mesh(mesh)
    placed = None if asked is None else place_mesh(machine, asked)
    return machine_view(machine, asked, placed, width, palette, verbose)


def text(name, mesh=None, width=80, verbose=False):
    return "\n".join(line.plain for line in page(name, mesh, width, verbose=verbose))


def test_what_few_ask_for_is_in_the_long_page():
    short, full = (text("h100:2x8", "X=2,Y=8", verbose=verbose) for verbose in (False, True))
    assert "1.98 GHz" not in short
    assert "  clock     1.98 GHz" in full
    assert "  host      64 GB/s each way" in full
    assert len(text("v5p:4x4x8", "X=4,Y=32").splitlines()) <= 40


def test_the_fitted_constants_are_on_the_page_with_their_source():
    found, like = text("h100:8"), text("h200:8")
    assert "collectives over 8, fitted to NCCL on H100 (openxla/xla, xla/service/gpu/model)" in found
    assert "  all-reduce          36.6 µs           46%\n                      64.4 µs           80%" in found
    assert "matmuls, fitted to cuBLAS on H100" in found
    assert "  bf16  5.7 µs          85%      15 TB/s" in found
    assert "fitted to NCCL on H100" in like


@pytest.mark.parametrize(
    "name", ["gb200:4", "gb200:16", "gb200:16x4", "gb300:8", "h100:2", "h100:4x2", "b200:2"]
)
def test_a_size_of_which_only_some_collectives_were_measured(name):
    assert "collective-permute" in text(name)


def test_a_page_says_what_nobody_publishes_and_what_has_no_compiler():
    amd, trainium = text("mi300x:8", "X=8"), text("trn2:64")
    assert "  Infinity Fabric  8 devices  each pair  48 GB/s  600 ns per hop" in amd
    assert "  X=8  8 through Infinity Fabric, each pair at 48 GB/s" in amd
    assert "No compiler for AMD Instinct MI300X is here" in amd
    assert "NeuronLink  64 devices  switch  not published" in trainium
    assert "NeuronLink has no published bandwidth" in " ".join(trainium.split())
    assert "by formula" not in trainium
    placed = text("trn2:64", "X=1,Y=64")
    assert "  X=1   one device\n  Y=64  64 through NeuronLink, no bandwidth published" in placed
    assert text("gb200:2x72").startswith("gb200:2x72  144 devices in 2 nodes of 72, gb200, 36 hosts of 4\n")


def test_times_of_published_links_do_not_stand_beside_other_links():
    slower = read_machine('base = "h100:8"\n[node]\nbandwidth = "200GB/s"\n')
    lines = [line.plain for line in machine_view(slower, None, None, 80, PLAIN)]
    begin = next(number for number, line in enumerate(lines) if line.startswith("collectives over 8"))
    assert not any("measured  " in line for line in lines[begin:])


def test_a_page_says_which_of_points_and_lines_hold_and_what_is_levelled():
    machine = read_machine(
        'base = "h100:8"\n[[measured]]\nop = "psum"\nmesh = "X=8"\naxes = "X"\n'
        'regimes = [{from = "1KiB", latency = "30us", bandwidth = "300GB/s"}]\n'
        'points = [{size = "1KiB", time = "90us"}, {size = "1MiB", time = "40us"}]\n'
    )
    found = " ".join(line.plain.strip() for line in machine_view(machine, None, None, 80, PLAIN))
    assert "Between points, times are interpolated; beyond them the lines hold" in found
    assert "1 KiB of psum took longer than a larger size and takes that one's time." in found
    assert machine.measured[0].seconds(1024) == pytest.approx(40e-6)


def test_measured_points_stand_beside_the_formula():
    machine = read_machine(
        'base = "h100:8"\n[[measured]]\nop = "psum"\nmesh = "X=8"\naxes = "X"\n'
        'points = [{size = "1KiB", time = "30us"}, {size = "1MiB", time = "40us"}]\n'
    )
    lines = [line.plain for line in machine_view(machine, None, None, 80, PLAIN)]
    (row,) = (number for number, line in enumerate(lines) if line.endswith("by lines or formula"))
    assert [" ".join(line.split()) for line in lines[row + 1 : row + 3]] == [
        "psum X of X=8 1 KiB 30 µs 36.6 µs",
        "1 MiB 40 µs 45.4 µs",
    ]


def test_a_ring_leaves_the_page_and_a_line_does_not():
    assert (
        """
  z 0
    ┆   ┆   ┆   ┆
  ┄┄0───1───2───3─┄┄
    │   │   │   │
  ┄┄4───5───6───7─┄┄
    │   │   │   │
  ┄┄8───9───10──11┄┄
    │   │   │   │
  ┄┄12──13──14──15┄┄
    ┆   ┆   ┆   ┆
""".strip("\n")
        in text("v4:4x4x4", width=30)
    )
    assert (
        """
  0──1
  │  │
  2──3
""".strip("\n")
        in text("v5e:2x2")
    )


def test_devices_have_their_coordinates_in_the_mesh():
    """The ring that JAX makes of two by two chips."""
    found = text("v5e:2x2", "X=4")
    assert "  0──1\n  │  │\n  3──2" in found
    assert "X=4  line of 2 along y at 45 GB/s, line of 2 along x at 45 GB/s" in found


def test_two_devices_of_a_chip():
    assert "  0·1──2·3\n" in text("v2:2x2", "X=8")
    assert "8 devices, 2 a chip" in text("v2:2x2")
    assert "share its links" not in text("v2:2x2", "X=8")
    assert "a group with one of them gets 1/2 of each" in text("tpu7x:4x4x4", "X=2,Y=64")


def test_nodes_hang_on_their_switches():
    found = text("h100:2x4", width=30)
    assert "  node 1\n  4  5  6  7\n  └──┴──┴──┘\n  NVLink 450 GB/s" in found
    assert "2 nodes, joined by a network" in found


def test_slices_are_drawn_once():
    found = text("3*v5e:2x2", "D=3,X=4")
    assert "slice 0; slices 1 to 2 are the same, over a network of 3.125 GB/s per device" in found
    assert "D=3  3 over DCN at 3.125 GB/s each" in found


def test_the_figures_and_their_source():
    found = text("v5p:2x2x1", verbose=True)
    for words in (
        "459 TFLOP/s in bf16",
        "918 TFLOP/s in s8, u8",
        "96 GiB, 95.73 GiB for a program",
        "2.8 TB/s",
        "128 MiB",
        "1.75 GHz",
        'figures: "How to Scale Your Model" (2025)',
    ):
        assert words in found
    assert "HBM   80 GB" in text("h100:8")


def test_what_the_file_does_not_give_is_said():
    machine = read_machine('[node]\ndevices = 2\nbandwidth = "10GB/s"')
    found = "\n".join(line.plain for line in machine_view(machine, None, None, 80, PLAIN, True))
    assert found.count("not given") == 6
    assert "figures: machine.toml" in found


@pytest.mark.parametrize("width", [30, 80])
@pytest.mark.parametrize(
    ("name", "mesh"),
    [
        ("v5e:16x16", "X=16,Y=16"),
        ("v5p:16x16x32", None),
        ("tpu7x:4x4x4", "X=2,Y=64"),
        ("h100:128x8", "X=128,Y=8"),
        ("h100:1", None),
        ("v6e:1x1", "X=1"),
        ("64*v5e:16x16", None),
    ],
)
def test_nothing_is_wider_than_the_page(name, mesh, width):
    lines = page(name, mesh, width)
    assert max(line.cell_len for line in lines) <= width
    assert len(lines) < 110


def test_links_have_the_colour_of_the_axis_along_them():
    mesh = parse_mesh("X=4,Y=4")
    row = next(
        line for line in page("v5e:4x4", "X=4,Y=4", palette=TRUECOLOR) if line.plain.startswith("  0,0──")
    )
    styles = {str(span.style) for span in row.spans if row.plain[span.start : span.end] == "──"}
    assert styles == {str(TRUECOLOR.axis(mesh, "Y"))}
    # The commas are dim, not the whole row.
    assert str(row.style) == ""
    assert all(row.plain[span.start : span.end] == "," for span in row.spans if str(span.style) == "dim")


def test_every_chip_has_a_row_of_figures():
    machines = [choice.machine for group in target_groups() for choice in group.choices if choice.machine]
    lines = [line.plain for line in figures_table(machines, 80)]
    assert [line.split()[0] for line in lines[1:]] == [*TPUS, *(name for name in GPUS if name in COMPILED)]
    assert "v5e         197 TFLOP/s   16 GiB  820 GB/s       45 GB/s       3.125 GB/s" in "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert all(line.cell_len <= 40 for line in figures_table(machines, 40))
