"""The arrays of a compiled text, beside what Shardy says of values inside."""

from __future__ import annotations

from shardviz.hlo import read_hlo
from shardviz.reports.arrays import ProgramEnds, arrays_of
from shardviz.reports.lowered_module import LoweredArray, SplitValue
from shardviz.sharding import Mesh, PartitionSpec

MESH = Mesh(("x", "y"), (2, 4))
TEXT = """HloModule jit_f, is_scheduled=true, num_partitions=8

%body (p: (s32[], f32[16,64,32])) -> (s32[], f32[16,64,32]) {
  ROOT %p = (s32[], f32[16,64,32]) parameter(0)
}

%condition (p: (s32[], f32[16,64,32])) -> pred[] {
  %p = (s32[], f32[16,64,32]) parameter(0)
  ROOT %c = pred[] constant(false)
}

ENTRY %main (a: f32[64,128], b: f32[32,128]) -> f32[64,128] {
  %a = f32[64,128]{1,0} parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}, metadata={}
  %b = f32[32,128]{1,0:S(5)} parameter(1), sharding={replicated}, metadata={op_name="b"}
  %start = (s32[], f32[16,64,32]) custom-call(), custom_call_target="s"
  %loop = (s32[], f32[16,64,32]) while(%start), condition=%condition, body=%body
  ROOT %r = f32[64,128]{1,0} negate(%a)
}
"""


def rows_of(ends=ProgramEnds(), values=()):  # noqa: B008
    return arrays_of(read_hlo(TEXT, MESH, origins=True), MESH, ends, values)


def test_a_text_alone_tells_what_its_arguments_are():
    first, second, output = [row for row in rows_of() if row.kind in ("argument", "output")]
    assert (first.name, first.shape, first.part, first.copies) == ("", (128, 128), (64, 128), 4)
    assert (first.spec, first.memory_kind) == (PartitionSpec((("x",), ())), "device")
    assert (second.spec, second.copies, second.memory_kind) == (PartitionSpec.replicated(2), 8, "host")
    assert (output.kind, output.shape, output.spec, output.copies) == ("output", None, None, None)


def test_a_sharding_that_does_not_have_the_compiled_parts_is_not_believed():
    ends = ProgramEnds((LoweredArray("a", (100, 128), "f32"),))
    assert (rows_of(ends)[0].shape, rows_of(ends)[0].spec) == ((100, 128), None)
    ends = ProgramEnds((LoweredArray("a", (127, 128), "f32", PartitionSpec(((), ("x",)))),))
    assert [mark.kind for mark in rows_of(ends)[0].marks] == ["resharded", "padded"]


def test_the_compiled_loop_tells_which_dimension_of_a_residual_is_split():
    def residual(*dims):
        return SplitValue("residual", (16, 64, 128), "f32", PartitionSpec(dims), "while")

    for dims in (((), (), ("y",)), ((), ("y",), ()), (("y",), (), ())):
        (row,) = [row for row in rows_of(values=[residual(*dims)]) if row.kind == "residual"]
        assert (row.part, row.spec) == ((16, 64, 32), PartitionSpec(((), (), ("y",))))
    (other,) = [row for row in rows_of(values=[residual(("x",), (), ())]) if row.kind == "residual"]
    assert other == row  # Shardy's axis cannot have made it, and only y can
    in_two_ways = SplitValue("residual", (32, 64, 64), "f32", PartitionSpec((("x",), ("y",), ())), "while")
    assert not [row for row in rows_of(values=[in_two_ways]) if row.kind == "residual"]


def test_axes_of_size_1_split_nothing_and_cost_nothing():
    many = Mesh(("x", "y", *(f"one{number}" for number in range(16))), (2, 4, *(1,) * 16))
    value = SplitValue("residual", (16, 64, 128), "f32", PartitionSpec(((), ("y",), ())), "while")
    module = read_hlo(TEXT, MESH, origins=True)
    (row,) = [row for row in arrays_of(module, many, ProgramEnds(), [value]) if row.kind == "residual"]
    assert row.spec == PartitionSpec(((), (), ("y",)))


def test_a_pending_sum_and_a_part_of_a_byte_are_no_padding():
    pending = PartitionSpec((("x",), ()), ("y",))
    ends = ProgramEnds((LoweredArray("a", (128, 128), "f32", pending),))
    text = TEXT.replace(" last_tile_dim_replicate", " last_tile_dims={unreduced}")
    (row, *_) = arrays_of(read_hlo(text, MESH, origins=True), MESH, ends)
    assert row.spec in (None, pending)
    assert "padded" not in [mark.kind for mark in row.marks]
    small = TEXT.replace("f32[64,128]", "s4[3]").replace("{1,0}", "{0}").replace("[2,1,4]", "[2,4]")
    (row, *_) = arrays_of(read_hlo(small, MESH, origins=True), MESH, ProgramEnds())
    assert (row.shape, row.marks) == ((6,), ())


def test_a_token_among_the_results_is_passed_over():
    text = TEXT.replace(
        "ROOT %r = f32[64,128]{1,0} negate(%a)",
        "%t = token[] after-all()\n  %r = f32[64,128]{1,0} negate(%a)\n"
        "  ROOT %e = (token[], f32[64,128]{1,0}) tuple(%t, %r)",
    )
    results = (LoweredArray("token", (), "!stablehlo.token"), LoweredArray("loss", (128, 128), "f32"))
    rows = arrays_of(read_hlo(text, MESH, origins=True), MESH, ProgramEnds((), results))
    assert [row.name for row in rows if row.kind == "output"] == ["loss"]
