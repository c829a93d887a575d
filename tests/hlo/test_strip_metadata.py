"""What is left out of a compiler's text, and what stays."""

from __future__ import annotations

import pytest

from shardviz.hlo.listing import strip_metadata, stripped_lines

CASES = [
    (
        "  ROOT %all-reduce = bf16[4,8192]{1,0:T(4,128)(2,1)S(1)} all-reduce(%dot), channel_id=1, "
        'replica_groups=[2,4]<=[8], to_apply=%add, metadata={op_name="a, metadata={}" stack_frame_id=3}, '
        'backend_config={"a":{"b":"}"}}',
        "  ROOT %all-reduce = bf16[4,8192] all-reduce(%dot), channel_id=1, replica_groups=[2,4]<=[8], "
        "to_apply=%add",
    ),
    (
        "HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[]}, num_partitions=8, "
        'frontend_attributes={a="}"}',
        "HloModule jit_f, num_partitions=8",
    ),
    (
        "%p = f32[8]{0} parameter(0), sharding={devices=[2,4]<=[8]}",
        "%p = f32[8] parameter(0), sharding={devices=[2,4]<=[8]}",
    ),
    (
        "%a = f32[] all-gather(%p), replica_groups=mesh['a'=2,'b'=4] {'b'}, backend_config=\"\\\"{\"",
        "%a = f32[] all-gather(%p), replica_groups=mesh['a'=2,'b'=4] {'b'}",
    ),
    (
        '    %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"X"}, {}]>]>, '
        "sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=8, k=2}>} : "
        "(tensor<8x2xf32>, tensor<2x8xf32>) -> tensor<8x8xf32> loc(#loc11)",
        '    %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"X"}, {}]>]>} : '
        "(tensor<8x2xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>",
    ),
    (
        "%5 = stablehlo.add %0, %1 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<i32>",
        "%5 = stablehlo.add %0, %1 : tensor<i32>",
    ),
    ('module @jit_f attributes {mhlo.num_partitions = 8 : i32, a = "}"} {', "module @jit_f {"),
    ("", ""),
    ("{" * 50, "{" * 50),
]


@pytest.mark.parametrize(("line", "short"), CASES)
def test_a_line_keeps_what_a_reader_wants(line, short):
    assert strip_metadata(line) == short


def test_tables_of_source_locations_are_left_out():
    tables = 'FileNames\n1 "a.py"\n\nStackFrames\n1 {file_location_id=1}\n\n'
    text = f"HloModule a\n\n{tables}\nENTRY %e {{\n}}\n#loc = 1\n"
    assert [*stripped_lines(text)] == ["HloModule a", "", "ENTRY %e {", "}"]


@pytest.mark.parametrize(
    "piece", ["]{", ", metadata={", '"', '\\"', "loc(#", "sdy.sharding_rule = #sdy.op_sharding_rule<", "]{1,"]
)
def test_a_long_line_of_anything_is_folded_at_once(piece):
    line = piece * 200_000
    assert len(strip_metadata(line)) <= len(line)
