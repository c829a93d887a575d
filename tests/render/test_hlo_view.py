"""Programs on pages of fixed width: their collectives in a table, and as pictures."""

from __future__ import annotations

import json
from dataclasses import replace
from textwrap import dedent
from time import process_time

import pytest

from shardviz.documents.programs import hlo_document
from shardviz.hlo import HloModule, read
from shardviz.hlo.listing import Listing, list_hlo
from shardviz.notation.mesh import parse_mesh
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.programs.program_pages import HloPicture
from shardviz.render.programs.program_view import hlo_view
from shardviz.reports.entries import Selection
from shardviz.reports.program_report import report_of
from shardviz.user_files import EXAMPLES

PROGRAM = (EXAMPLES / "mlp.txt").read_text(encoding="utf-8")
XY = parse_mesh("X=2,Y=4")
MLIR = """module @m {
  sdy.mesh @mesh = <["X"=2]>
  func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.all_gather [{"X"}] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""


IN_ORDER = Selection("order")


def viewed(text: str, width: int, mesh: str | None = "X=2,Y=4") -> str:
    given = None if mesh is None else parse_mesh(mesh)
    return "\n".join(
        line.plain
        for line in hlo_view(
            report_of(read(text, given, infer=True)), given, width, PLAIN, IN_ORDER, verbose=True
        )
    )


def pictured(text: str, width: int) -> str:
    listing = list_hlo(text, XY)
    picture = HloPicture(listing, width, PLAIN)
    return "\n".join(picture.line(number).plain for number in range(len(listing.lines)))


def page(text: str) -> str:
    return dedent(text).strip("\n")


def test_collectives_stand_in_the_order_of_the_program() -> None:
    head = page(
        """
        jit_step  8 partitions, scheduled
        mesh X=2, Y=4  8 devices

        share  runs   sent  collective            where
        9.1 %    ×1  1 MiB  all-gather X          model.py:12
        9.1 %    ×1  1 MiB  collective-permute Y  model.py:12
         82 %    ×3  9 MiB  all-reduce Y          model.py:15

        by operation        share  runs    sent
        """
    )
    assert viewed(PROGRAM, 80).startswith(head)


def test_a_narrow_page() -> None:
    text = viewed(PROGRAM, 40, mesh=None)
    assert text.startswith(
        page(
            """
            jit_step  8 partitions, scheduled
            mesh axis_0=2, axis_1=4  8 devices
              found in the text; --mesh names your
              axes

            share   sent  collective
            9.1 %  1 MiB  all-gather axis_0
            """
        )
    )
    assert max(map(len, text.splitlines())) <= 40


def test_unknown_counts_are_in_no_sum() -> None:
    text = viewed(PROGRAM.replace('{"known_trip_count":{"n":"3"}}', "{}"), 80)
    assert "    ?     ?      ?  all-reduce Y          model.py:15" in text
    assert "all-reduce            0 %  0 + ?    0 B + ?" in text
    assert "all                 100 %  2 + ?  2 MiB + ?" in text
    assert "1 collective runs an unknown number of times and is not in the sums; hlo --trips" in text


def test_alike_collectives_of_one_line_share_a_line() -> None:
    module = read(PROGRAM, XY)
    assert isinstance(module, HloModule)
    gather, permute, reduce = module.collectives
    several = replace(module, collectives=(gather, permute, reduce, gather, permute) * 2)
    text = "\n".join(
        line.plain for line in hlo_view(report_of(several), XY, 100, PLAIN, IN_ORDER, verbose=True)
    )
    assert text.count("all-gather X") == 1
    assert "×4   4 MiB  all-gather X" in text
    assert "×6  18 MiB  all-reduce Y" in text


def test_what_is_not_there_is_said() -> None:
    nothing = (
        "HloModule empty, num_partitions=8\n\nENTRY %e (p: f32[]) -> f32[] {\n  %p = f32[] parameter(0)\n"
    )
    assert viewed(f"{nothing}}}\n", 80).endswith("no collective: nothing is sent")
    assert viewed(nothing, 80).endswith("no collective in the readable part")
    assert viewed(f"{nothing}}}\n", 80, mesh=None).splitlines()[1:] == ["", "no collective: nothing is sent"]
    alone = viewed(nothing.replace(", num_partitions=8", "") + "}\n", 80, mesh=None)
    assert alone.splitlines()[0] == "empty  1 partition, not scheduled"
    assert "mesh" not in alone
    unread = viewed(PROGRAM.replace("[2,4]<=[8]", "[2,4]<=[9]"), 80)
    assert "\nunreadable and not in the sums: 1 collective" in unread
    loose = (
        "%a = f32[4] all-reduce(%b), replica_groups={{0,3},{1,2}}, channel_id=1, use_global_device_ids=true"
    )
    assert "source line unknown" not in viewed(loose, 80, mesh=None), "its row says all"
    other = loose.replace("%a", "%c").replace("{{0,3},{1,2}}", "{{0,1},{2,3}}")
    text = viewed(f"{loose}\n{other}", 80, mesh=None)
    assert text.startswith("unnamed program")
    assert "source line unknown" in text
    assert "all-reduce {0,3} +1" in text


BEFORE = """HloModule jit_f, num_partitions=8

ENTRY %main.1 (a: f32[8,16]) -> f32[8] {
  %a.1 = f32[8,16] parameter(0), sharding={mesh['X'=2,'Y'=4], [{'X'}, {'Y'}]}
  ROOT %r = f32[8] reduce(%a.1, %zero), dimensions={1}, to_apply=%add
}
"""
LOWERED = """module @jit_f {
  sdy.mesh @mesh = <["X"=2, "Y"=4]>
  func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}) {
    %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
  }
}
"""


@pytest.mark.parametrize(
    "text", [BEFORE, BEFORE.replace("mesh['X'=2,'Y'=4], [", "devices=[2,4]<=[8] ["), LOWERED]
)
def test_a_program_before_the_partitioner_has_no_collective_yet(text: str) -> None:
    shown = viewed(text, 120, mesh=None)
    assert "\nno collective yet: the partitioner inserts them later" in shown
    assert ("mesh X=2, Y=4" in shown) == ("devices=" not in text)
    assert hlo_document(report_of(read(text)))["awaits_partitioner"]
    for later in (text.replace("main.1", "main.1_spmd"), text.replace("jit_f,", "jit_f, is_scheduled=true,")):
        assert later == text or "no collective: nothing is sent" in viewed(later, 120, mesh=None)
    reduced = "  %s = f32[8] all-reduce(%a.1), replica_groups={}\n  ROOT"
    some = viewed(text.replace("  ROOT", reduced), 120, mesh=None)
    assert text is LOWERED or "the partitioner may insert more later" in some


def test_parts_of_axes_are_explained() -> None:
    assert "is a part of" not in viewed(PROGRAM, 80)
    assert viewed(PROGRAM, 80, mesh="X=4,Y=2").splitlines()[-3:] == [
        "",
        "X:(1)2 is a part of X: X=4 is 2×2, and 2 its outer factor",
        "X:(2)2 is a part of X: X=4 is 2×2, and 2 its inner factor",
    ]
    cut = PROGRAM.replace("[2,4]<=[8]", "[4,2]<=[2,2,2]T(0,2,1)")
    last = viewed(cut, 80, mesh="X=8").splitlines()[-1]
    assert last == "X:(2)2 is a part of X: X=8 is 2×2×2, and 2 its middle factor"


def test_foreign_names_cannot_move_the_cursor() -> None:
    hostile = PROGRAM.replace("model.py", "m\x1b[2J.py").replace("fusion.1 ", "fu\x9bsion.1 ")
    for text in (viewed(hostile, 80), pictured(hostile, 80)):
        assert all(line.isprintable() for line in text.splitlines())


def test_a_picture_joins_starts_and_dones() -> None:
    assert pictured(PROGRAM, 80) == (
        dedent(
            """\
                ENTRY main
                acts = bf16[512,1024] parameter(0)
                weights = bf16[512,1024] parameter(1)
                w2 = bf16[1024,1024] parameter(2)
            ┌ ▸ all-gather-start = bf16[1024,1024] all-gather-start(weights)…  over X  2 MiB
            │┌▸ collective-permute-start = bf16[512,1024] collective-permute…  over Y  1 MiB
            ││  fusion.1 = bf16[512,1024] fusion: convolution(acts, w2)
            └│  all-gather-done = bf16[1024,1024] all-gather-done(all-gather-start)
             └  collective-permute-done = bf16[512,1024] collective-permute-done(collective…
                fusion.2 = bf16[512,1024] fusion: convolution(collective-permute-done, all-…
                start = (s32[], +1) tuple(fusion.1, fusion.2)
                while.1 = (s32[], +1) while(start)
                  body of while.1: body
                  state = (s32[], +1) parameter(0)
                  i = s32[] get-tuple-element(state) index=0
                  x = f32[512,1024] get-tuple-element(state) index=1
              ▸   all-reduce.1 = f32[512,1024] all-reduce(x)  over Y  2 MiB  ×3
                  next = (s32[], +1) tuple(i, all-reduce.1)
                out = f32[512,1024] get-tuple-element(while.1) index=1
            """
        ).rstrip("\n")
    )


def test_the_lines_have_the_colours_of_the_axes() -> None:
    line = HloPicture(list_hlo(PROGRAM, XY), 80, TRUECOLOR).line(6)
    colours = [TRUECOLOR.axis(XY, axis) for axis in ("X", "Y")]
    assert [span.style for span in line.spans if span.end <= 2] == colours


@pytest.mark.parametrize("width", [10, 40, 60, 100, 200])
def test_no_line_of_a_picture_is_wider_than_the_page(width: int) -> None:
    lines = pictured(PROGRAM, width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) == 19


def many(pairs: int) -> Listing:
    starts = (
        f"  %s{i} = (f32[2], f32[2]) collective-permute-start(%p), source_target_pairs={{{{0,1}}}}\n"
        for i in range(pairs)
    )
    dones = (f"  %d{i} = f32[2] collective-permute-done(%s{i})\n" for i in range(pairs))
    return list_hlo(f"HloModule m, num_partitions=2\n\nENTRY e {{\n{''.join(starts)}{''.join(dones)}}}\n")


def test_more_at_once_than_have_a_line_have_their_mark() -> None:
    picture = HloPicture(many(6), 80, PLAIN)
    lines = [picture.line(number).plain for number in range(8)]
    assert lines[4].startswith("│││┌▸ s3")
    assert lines[5].startswith("││││▸ s4")
    assert lines[7].startswith("└│││  d0")


def test_one_line_costs_the_same_in_a_large_program() -> None:
    small, large = (HloPicture(many(pairs), 100, TRUECOLOR) for pairs in (100, 2_000))

    def seconds(picture: HloPicture) -> float:
        times = []
        for _ in range(5):
            started = process_time()
            for number in range(50, 150):
                picture.line(number)
            times.append(process_time() - started)
        return min(times)

    assert seconds(large) < 5 * seconds(small)


COLLECTIVE = {
    "op",
    "axes",
    "groups",
    "operand_shape",
    "result_shape",
    "dtype",
    "bytes",
    "wire_bytes",
    "count",
    "source",
}


def test_a_document() -> None:
    found = hlo_document(report_of(read(PROGRAM, XY)), XY)
    assert json.loads(json.dumps(found)) == found
    assert found["schema"] == "shardviz/1"
    assert (found["module"], found["num_partitions"], found["is_scheduled"]) == ("jit_step", 8, True)
    assert found["mesh"] == {"axis_names": ["X", "Y"], "axis_sizes": [2, 4], "device_order": None}
    assert not found["is_mesh_inferred"]
    assert found["totals"]["all-reduce"] == {
        "count": 3,
        "bytes": 6_291_456,
        "wire_bytes": 9_437_184,
        "unknown": 0,
    }
    assert [each["axes"] for each in found["collectives"]] == [["X"], ["Y"], ["Y"]]
    assert all(set(each) >= COLLECTIVE for each in found["collectives"])
    assert found["collectives"][0]["is_async"]
    assert found["unread"] == []


def test_a_document_of_mlir_says_what_only_hlo_could() -> None:
    found = hlo_document(report_of(read(MLIR)))
    assert (found["dialect"], found["num_partitions"], found["is_scheduled"]) == ("mlir", None, False)
    assert found["mesh"]["axis_names"] == ["X"]
    assert found["totals"]["all-gather"]["count"] == 1
    assert viewed(MLIR, 80, mesh=None).splitlines()[1] == "mesh X=2  2 devices"


def test_branches_are_said_to_be_in_the_sums() -> None:
    text = """
HloModule m, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {
  ROOT %s = f32[] add(%a, %b)
}

%yes (p: f32[8]) -> f32[8] {
  ROOT %r = f32[8] all-reduce(%p), channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=%add
}

%no (p: f32[8]) -> f32[8] {
  ROOT %p = f32[8] parameter(0)
}

ENTRY %main (c: pred[], p: f32[8]) -> f32[8] {
  ROOT %r = f32[8] conditional(%c, %p, %p), true_computation=%yes, false_computation=%no
}
"""  # noqa: E501
    assert "1 collective is in branches of conditionals" in viewed(text, 100)
    assert "branches" not in viewed(PROGRAM, 100)


BEYOND = """HloModule m, num_partitions=1048576

ENTRY %e (p: f32[64,128]) -> f32[64,128] {
  %send = (f32[64,128]{1,0}, u32[], token[]) send(%p, %t), channel_id=1, is_host_transfer=true
  %send.1 = (f32[64,128]{1,0}, u32[], token[]) send(%p, %t), channel_id=2
  %recv = (f32[64,128]{1,0}, u32[], token[]) recv(%t), channel_id=3, is_host_transfer=true
  %c = f32[64] all-reduce(%p), replica_groups=[65536,16]<=[1048576], use_global_device_ids=true, channel_id=4
}
"""


def test_the_host_stands_apart_and_groups_too_many_to_list_are_counted() -> None:
    said = viewed(BEYOND, 80, None)
    assert (
        page(
            """
            share  runs    sent  collective          where
              0 %    ×1     0 B  send to the host
             99 %    ×1  32 KiB  send
              0 %    ×1     0 B  recv from the host
            1.4 %    ×1   480 B  all-reduce axis_1
            """
        )
        in said
    )
    listed = "\n".join(
        line.plain for line in hlo_view(report_of(read(BEYOND)), None, 80, PLAIN, IN_ORDER, verbose=True)
    )
    assert "all-reduce in 65,536 groups of 16" in listed
    document = hlo_document(report_of(read(BEYOND)))
    assert document["totals"].keys() == {"send", "all-reduce"}
    assert document["totals_of_host_transfers"].keys() == {"send", "recv"}
    assert [each["is_host_transfer"] for each in document["collectives"]] == [True, False, True, False]
    (reduced,) = [each for each in document["collectives"] if each["op"] == "all-reduce"]
    assert (reduced["groups"], reduced["group_count"], reduced["group_size"]) == (None, 65536, 16)
