"""A target's final program under its answer."""

from __future__ import annotations

from shardviz.hardware.placement import DeviceCoords, Placement
from shardviz.render.palette import PLAIN
from shardviz.render.programs.program_pages import program_view
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Mesh

MESH = Mesh(("X",), (4,))
SHARDY = """\
module @m {
  sdy.mesh @mesh = <["X"=4]>

  func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}]>}) {
  }
}
"""
HLO = """\
HloModule m, is_scheduled=true, num_partitions=4

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %cp = f32[4]{0} collective-permute(%p), channel_id=1, source_target_pairs={{0,1}}
}
"""


def shown(compiled: TargetResult, width: int) -> list[str]:
    blank, *lines = program_view(compiled, MESH, width, PLAIN)
    assert not blank.plain
    return [line.plain for line in lines]


def test_shardys_program_is_mlir_cut_at_the_edge() -> None:
    assert shown(TargetResult("shardy", "ok", text=SHARDY), 40) == [
        "Shardy's program, all devices at once: …",
        "module @m {",
        '  sdy.mesh @mesh = <["X"=4]>',
        "  func.func public @main(%arg0: tensor<…",
        "  }",
        "}",
    ]


def test_a_compilers_program_is_a_picture() -> None:
    places = tuple(DeviceCoords((number,)) for number in range(4))
    placement = Placement((3, 2, 1, 0), places, (4,), (False,))
    heading, *lines = shown(TargetResult("v5e:1x4", "ok", text=HLO, placement=placement), 100)
    assert heading == "v5e:1x4's program on each device"
    assert " ".join(lines[-1].split()) == "▸ cp = f32[4] collective-permute(p) over X 16 B"
