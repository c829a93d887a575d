"""The page of a program by cost: a line for each collective at any width, then the sums."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from shardviz.hardware.machine_file import named_machine
from shardviz.hlo.text.call_graph import with_trip_counts
from shardviz.notation.mesh import parse_mesh
from shardviz.render.palette import PLAIN
from shardviz.render.programs.cost_lines import cost_lines, sum_lines, verdict_lines
from shardviz.reports.entries import Selection
from shardviz.reports.program_report import program_report
from shardviz.reports.verdicts import ChangeSaving, WasteVerdict
from shardviz.user_files import EXAMPLES

PROGRAM = (EXAMPLES / "mlp.txt").read_text(encoding="utf-8")
XY = parse_mesh("X=2,Y=4")
ROW = """  %g.{n} = f32[64,8]{{1,0}} {op}(%w.{n}), channel_id={n}, replica_groups={groups}, \
dimensions={{0}}, use_global_device_ids=true, metadata={{op_name="jit(step)/{path}/dot_general" \
source_file="/home/me/{file}" source_line={n}}}
"""
LAYERS = "\n".join(
    [
        "HloModule jit_step, is_scheduled=true, num_partitions=8\n",
        "%body (s: (s32[], f32[64,8])) -> (s32[], f32[64,8]) {",
        "  %s = (s32[], f32[64,8]{1,0}) parameter(0)",
        "  %w.9 = f32[64,8]{1,0} get-tuple-element(%s), index=1",
        ROW.format(
            n=9,
            op="collective-permute",
            groups="{}, source_target_pairs={{0,1},{1,0}}",
            path="jvp(model)/while/body/a_long_name_of_a_scope/attention/rotate",
            file="rotary_embedding_of_positions.py",
        ).replace(" replica_groups={},", ""),
        "  %i = s32[] get-tuple-element(%s), index=0",
        "  ROOT %t = (s32[], f32[64,8]{1,0}) tuple(%i, %g.9)",
        "}\n",
        "%condition (s: (s32[], f32[64,8])) -> pred[] {",
        "  %s = (s32[], f32[64,8]{1,0}) parameter(0)",
        "  %i = s32[] get-tuple-element(%s), index=0",
        '  ROOT %less = pred[] custom-call(%i), custom_call_target="more"',
        "}\n",
        "ENTRY %main (w: f32[32,8]) -> f32[64,8] {",
        "  %w.1 = f32[32,8]{1,0} parameter(0), metadata={op_name=\"params['layers']['mlp']['w_in']\"}",
        ROW.format(
            n=1, op="all-gather", groups="[4,2]<=[2,4]T(1,0)", path="jvp(mlp)", file="mlp.py"
        ).rstrip(),
        "  %zero = s32[] constant(0)",
        "  %start = (s32[], f32[64,8]{1,0}) tuple(%zero, %g.1)",
        "  %layers = (s32[], f32[64,8]{1,0}) while(%start), condition=%condition, body=%body",
        "  ROOT %out = f32[64,8]{1,0} get-tuple-element(%layers), index=1",
        "}",
    ]
)


def page(text: str) -> str:
    return dedent(text).strip("\n")


def shown(text: str, width: int, *, machine: str = "", selection: Selection | None = None) -> str:
    report = program_report(text, named_machine(machine) if machine else None, mesh=XY)
    chosen = selection or Selection()
    lines = [*cost_lines(report, chosen, width, PLAIN), *sum_lines(report, chosen, width, PLAIN)]
    return "\n".join(line.plain for line in lines)


def test_a_line_each_then_the_sums() -> None:
    assert shown(PROGRAM, 80, machine="v5e:2x4") == page(
        """
        share  exposed     time  runs   sent  collective            where
         68 %   126 µs   126 µs    ×3  9 MiB  all-reduce Y          model.py:15
         26 %  47.6 µs  53.6 µs    ×1  1 MiB  all-gather X          model.py:12
          0 %   hidden  28.3 µs    ×1  1 MiB  collective-permute Y  model.py:12

        by operation        share  exposed     time  runs    sent
        all-reduce           68 %   126 µs   126 µs     3   9 MiB
        all-gather           26 %  47.6 µs  53.6 µs     1   1 MiB
        collective-permute    0 %   hidden  28.3 µs     1   1 MiB
        all                  94 %   173 µs   208 µs     5  11 MiB

        by mesh axis  share  exposed     time  runs    sent
        Y              68 %   126 µs   154 µs     4  10 MiB
        X              26 %  47.6 µs  53.6 µs     1   1 MiB

        by link  share  exposed    time  runs    sent
        ICI       94 %   173 µs  208 µs     5  11 MiB

        by source line  share  exposed     time  runs   sent
        model.py:15      68 %   126 µs   126 µs     3  9 MiB
        model.py:12      26 %  47.6 µs  81.9 µs     2  2 MiB
        """
    )


def test_narrow_pages_have_fewer_figures() -> None:
    lines = shown(PROGRAM, 40, machine="v5e:2x4").splitlines()
    assert (
        lines[:7]
        == page(
            """
        exposed   sent  collective
         126 µs  9 MiB  all-reduce Y
                        model.py:15
        47.6 µs  1 MiB  all-gather X
                        model.py:12
         hidden  1 MiB  collective-permute Y
                        model.py:12
        """
        ).splitlines()
    )
    assert "by mesh axis  share  exposed    sent" in lines


@pytest.mark.parametrize("width", [20, 40, 80])
@pytest.mark.parametrize("machine", ["", "v5e:2x4"])
def test_no_operation_is_cut_and_no_line_is_too_long(width: int, machine: str) -> None:
    for text in (PROGRAM, LAYERS):
        lines = shown(text, width, machine=machine).splitlines()
        assert max(map(len, lines)) <= width
        words = " ".join(lines).split()
        assert {"all-gather", "collective-permute"} <= {*words}
        assert not any("…" in line.partition("  ")[0] for line in lines)


def test_the_time_is_told_where_some_of_it_is_hidden() -> None:
    only = Selection(ops=("all-reduce",))
    assert shown(PROGRAM, 80, machine="v5e:2x4", selection=only).splitlines()[0] == (
        "share  exposed  runs   sent  collective    where"
    )


def test_the_place_loses_its_front() -> None:
    (gather,) = (line for line in shown(LAYERS, 60).splitlines() if "all-gather" in line and "×" in line)
    assert gather.endswith("mlp.py:1")
    assert "…" in gather
    assert "'w_in']" in gather


def test_the_sum_of_a_gradient_is_told_from_a_parameter_that_is_gathered() -> None:
    report = program_report(PROGRAM, mesh=XY)
    named = replace(report.entries[0], phase="backward", gradient_of=("params['w']",))
    (_, line) = cost_lines(replace(report, entries=(named,)), Selection(), 80, PLAIN)
    assert "  grad params['w']  model.py" in line.plain


def test_the_rest_is_told() -> None:
    top = shown(PROGRAM, 80, selection=Selection(top=1)).splitlines()
    assert top[1].endswith("model.py:15")
    assert top[2] == "and 2 more lines, 18 % of the bytes"
    filtered = shown(PROGRAM, 80, selection=Selection(axes=("X",))).splitlines()
    assert "2 collectives are not shown" in filtered
    none = shown(PROGRAM, 80, selection=Selection(ops=("all-to-all",))).splitlines()
    assert none[0] == "no such collective: the program has all-gather, collective-permute, all-reduce"


def test_a_loop_of_unknown_length_is_named_and_can_be_told() -> None:
    text = " ".join(shown(LAYERS, 100).split())
    assert (
        "1 collective runs an unknown number of times and is not in the sums; hlo --trips layers=N sets the "
        "trip counts" in text
    )
    for name in ("layers", "body"):
        told = shown(with_trip_counts(LAYERS, {name: 32}), 100)
        assert "×32" in told
        assert "unknown" not in told


def test_shapes_give_way_to_the_line_of_the_file() -> None:
    whole = "f32[32,8]→[64,8]"
    for letters, told in ((30, whole), (46, "")):
        text = LAYERS.replace("mlp.py", f"{'m' * letters}.py")
        (gather,) = (line for line in shown(text, 100).splitlines() if "all-gather" in line and "×" in line)
        assert gather.endswith(f"{'m' * letters}.py:1")
        assert [word for word in gather.split() if "f32" in word] == [told] * bool(told)


def test_a_verdict_says_only_what_changes() -> None:
    for saving, words in (
        (ChangeSaving(0, 0, 2e-6), "a run takes 2 µs less"),
        (ChangeSaving(1024), "each device sends 1 KiB less"),
        (
            ChangeSaving(1024, 512, 2e-6),
            "a run takes 2 µs less; each device sends 1 KiB less and needs 512 B more memory",
        ),
    ):
        lines = verdict_lines([WasteVerdict("reshard", "", "", saving)], 100)
        page = " ".join(" ".join(line.plain for line in lines).split())
        assert page.endswith(f"instead: {words} (priced, not compiled)")
