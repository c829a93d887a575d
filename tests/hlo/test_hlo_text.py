# ruff: noqa: E501 - a compiler's line cannot be broken
"""HLO text of kinds that the CPU compiler does not print, each written for its test."""

from __future__ import annotations

import gc

import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo import Collective, HloModule, read_hlo
from shardviz.hlo.collective import totals
from shardviz.sharding import Mesh

XY = Mesh(("X", "Y"), (2, 4))
HEADER = "HloModule m, is_scheduled=true, num_partitions=8\n\n"
ALL = "channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true"
ON_Y = "channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true"


TABLES = (
    'FileNames\n1 "/home/u/model.py"\n\nFunctionNames\n1 "f"\n\n'
    "FileLocations\n1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}\n"
    "2 {file_name_id=1 function_name_id=1 line=40 end_line=41 column=3 end_column=4}\n\n"
    "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 parent_frame_id=2}\n\n\n"
)


def module(body: str, before: str = "") -> str:
    return f"{HEADER}{before}ENTRY %main (p: f32[8]) -> f32[8] {{\n{body}\n}}\n"


def read(body: str, before: str = "") -> HloModule:
    return read_hlo(module(body, before), XY)


def only(body: str, before: str = "") -> Collective:
    found = read(body, before)
    assert found.unread == ()
    (collective,) = found.collectives
    return collective


@pytest.mark.parametrize(
    ("line", "op", "operand", "result", "nbytes", "wire", "arrays"),
    [
        (f"f32[8,4]{{1,0}} all-gather(%p), {ON_Y}, dimensions={{0}}", "all-gather", (2, 4), (8, 4), 128, 96, 1),
        (f"f32[2,4]{{1,0}} reduce-scatter(%p), {ON_Y}, dimensions={{0}}, to_apply=%add",
         "reduce-scatter", (8, 4), (2, 4), 128, 96, 1),
        (f"f32[8,4]{{1,0}} all-reduce(%p), {ON_Y}, to_apply=%add", "all-reduce", (8, 4), (8, 4), 128, 192, 1),
        ("f32[8,4]{1,0} all-to-all(%p), channel_id=1, replica_groups=[2,4]<=[8], dimensions={0}",
         "all-to-all", (8, 4), (8, 4), 128, 96, 1),
        ("(s8[2], s8[2], s8[2], s8[2]) all-to-all(%a, %b, %c, %d), channel_id=1, replica_groups=[2,4]<=[8]",
         "all-to-all", (2,), (2,), 8, 6, 4),
        ("f32[8,4]{1,0} collective-permute(%p), channel_id=1, source_target_pairs={{0,1},{1,0}}",
         "collective-permute", (8, 4), (8, 4), 128, 128, 1),
        ("f32[8,4]{1,0} collective-broadcast(%p), channel_id=1, replica_groups=[2,4]<=[8]",
         "collective-broadcast", (8, 4), (8, 4), 128, 128, 1),
        ("bf16[16,4]{1,0} ragged-all-to-all(bf16[8,4]{1,0} %i, bf16[16,4]{1,0} %o, s32[4]{0} %a, s32[4]{0} %b,"
         " s32[4]{0} %c, s32[4]{0} %d), channel_id=1, replica_groups=[2,4]<=[8]",
         "ragged-all-to-all", (8, 4), (16, 4), 64, 48, 1),
        ("(f32[8,4]{1,0}, u32[], token[]) send(%p, %t), channel_id=1", "send", (8, 4), (8, 4), 128, 128, 1),
        ("(f32[8,4]{1,0}, u32[], token[]) recv(%t), channel_id=1", "recv", (8, 4), (8, 4), 128, 0, 1),
        (f"(bf16[2,4], bf16[8,4]{{1,0:T(8,128)(2,1)S(1)}}) all-gather-start(%p), {ON_Y}, dimensions={{0}}",
         "all-gather", (2, 4), (8, 4), 64, 48, 1),
        (f"((bf16[2], bf16[4]), (bf16[8], bf16[16])) all-gather-start(%p, %q), {ON_Y}, dimensions={{0}}",
         "all-gather", (2,), (8,), 48, 36, 2),
        (f"f32[8,4] all-reduce-start(%p), {ON_Y}, to_apply=%add", "all-reduce", (8, 4), (8, 4), 128, 192, 1),
        (f"(f32[8], /*index=1*/bf16[4]) all-reduce-start(%p, %q), {ON_Y}, to_apply=%add",
         "all-reduce", (8,), (8,), 40, 60, 2),
        ("(f32[8], f32[8], u32[], u32[]) collective-permute-start(%p), channel_id=1, source_target_pairs={{0,1}}",
         "collective-permute", (8,), (8,), 32, 32, 1),
        (f"((f32[8,4]), f32[2,4]) reduce-scatter-start(%p), {ON_Y}, dimensions={{0}}, to_apply=%add",
         "reduce-scatter", (8, 4), (2, 4), 128, 96, 1),
        (f"s4[8]{{0:E(4)}} all-gather(%p), {ON_Y}, dimensions={{0}}", "all-gather", (2,), (8,), 4, 3, 1),
        (f"f8e4m3fn[<=8] all-reduce(%p), {ON_Y}, to_apply=%add", "all-reduce", (8,), (8,), 8, 12, 1),
        (f"f32[] all-reduce(%p), {ON_Y}, to_apply=%add", "all-reduce", (), (), 4, 6, 1),
    ],
)  # fmt: skip
def test_each_opcode(line, op, operand, result, nbytes, wire, arrays):
    found = only(f"  ROOT %c.1 = {line}")
    assert (found.op, found.name, found.operand_shape, found.result_shape) == (op, "c.1", operand, result)
    assert (found.bytes, found.wire_bytes, found.arrays, found.count) == (nbytes, wire, arrays, 1)


def test_transfers_to_the_host_stand_apart():
    host = "channel_id=1, is_host_transfer=true"
    found = read(
        f"  %s = (f32[8,4]{{1,0}}, u32[], token[]) send(%p, %t), {host}\n  %sd = token[] send-done(%s), {host}\n"
        f"  %r = (f32[8,4]{{1,0}}, u32[], token[]) recv(%t), {host}\n"
        "  %s.2 = (f32[8,4]{1,0}, u32[], token[]) send(%p, %t), channel_id=2"
    )
    assert [(each.op, each.is_host_transfer, each.bytes, each.wire_bytes) for each in found.collectives] == [
        ("send", True, 128, 0),
        ("recv", True, 128, 0),
        ("send", False, 128, 128),
    ]
    assert [(total.op, total.is_host_transfer, total.count) for total in totals(found.collectives)] == [
        ("send", True, 1),
        ("recv", True, 1),
        ("send", False, 1),
    ]


@pytest.mark.parametrize("name", ["%ag", "ag", "all-gather", "%all-gather.3"])
@pytest.mark.parametrize("root", ["", "ROOT "])
def test_names_with_and_without_percent(name, root):
    found = only(f"  {root}{name} = f32[8]{{0}} all-gather(p), {ON_Y}, dimensions={{0}}")
    assert found.name == name.removeprefix("%")
    assert (found.axes, found.dim) == (("Y",), 0)


@pytest.mark.parametrize(
    "line",
    [
        '%a = f32[8] add(%p, %p), metadata={op_name="jit(f)/ all-reduce(x)"}',
        '%a = f32[8] custom-call(%p), backend_config={"note":" all-gather(%p), replica_groups={{0,1}}"}',
        '%a = f32[8] add(%p, %p), metadata={op_name="a \\" all-reduce(%p)"}',
        "%all-reduce = f32[8] add(%p, %p)",
        "%a = f32[8] get-tuple-element(%all-gather-start), index=0",
        "%a = f32[8] add(f32[8] all-reduce, f32[8] all-gather)",
        "%a = f32[8] all-gather-done(%all-gather-start)",
        "%a = f32[8] all-reduce-done(%all-reduce-start)",
        "%a = token[] send-done(%send)",
        "%a = f32[8] collective-permute-done(%collective-permute-start)",
    ],
)
def test_what_is_no_collective(line):
    assert read(f"  {line}") == HloModule("m", 8, 1, True, (), mesh=XY)


def test_a_start_and_its_done_are_one():
    assert only(
        f"  %s = (f32[2], f32[8]) all-gather-start(%p), {ON_Y}, dimensions={{0}}\n"
        "  %x = f32[8] multiply(%p, %p)\n"
        "  ROOT %d = f32[8] all-gather-done(%s)"
    ).result_shape == (8,)


ASYNC = f"""%wrapped (q: f32[8]) -> f32[2] {{
  %q = f32[8] parameter(0)
  ROOT %rs = f32[2] reduce-scatter(%q), {ON_Y}, dimensions={{0}}, to_apply=%add
}}, execution_thread="main"

"""


def test_an_async_wrapper_counts_once():
    found = only(
        "  %s = ((f32[8]), f32[2], s32[]) async-start(%p), calls=%wrapped\n"
        "  %u = ((f32[8]), f32[2], s32[]) async-update(%s), calls=%wrapped\n"
        "  ROOT %d = f32[2] async-done(%u), calls=%wrapped",
        ASYNC,
    )
    assert (found.op, found.name, found.count) == ("reduce-scatter", "rs", 1)


@pytest.mark.parametrize("groups", ["", f", {ON_Y}, dimensions={{0}}"])
def test_a_start_that_names_its_computation_counts_once(groups):
    found = (
        only(f"  %s = ((f32[8]), f32[2]) reduce-scatter-start(%p){groups}, calls=%wrapped", ASYNC)
        if (not groups)
        else read(
            f"  %s = ((f32[8]), f32[2]) reduce-scatter-start(%p){groups}, calls=%wrapped", ASYNC
        ).collectives[0]
    )
    assert (found.op, found.operand_shape, found.result_shape) == ("reduce-scatter", (8,), (2,))


def test_a_fused_reduce_scatter():
    fused = f"""%all-reduce-scatter.3 (q: bf16[16,8]) -> bf16[16,2] {{
  %q = bf16[16,8] parameter(0)
  %ar = bf16[16,8] all-reduce(%q), {ON_Y}, to_apply=%add
  ROOT %slice = bf16[16,2] dynamic-slice(%ar, %zero, %offset), dynamic_slice_sizes={{16,2}}
}}

"""
    found = only("  ROOT %f = bf16[16,2] fusion(%p), kind=kCustom, calls=%all-reduce-scatter.3", fused)
    assert (found.op, found.operand_shape, found.result_shape) == ("reduce-scatter", (16, 8), (16, 2))
    assert (found.bytes, found.wire_bytes, found.dim, found.axes) == (256, 192, 1, ("Y",))


@pytest.mark.parametrize(
    ("own", "callers", "source"),
    [
        ("", 'op_name="jit(f)/dot" stack_frame_id=2', "/home/u/model.py:40"),
        ('op_name="psum"', 'op_name="jit(f)/dot" stack_frame_id=2', "/home/u/model.py:40"),
        ('op_name="psum"', 'op_name="jit(f)/dot"', "psum"),
        ("", 'op_name="jit(f)/dot"', "jit(f)/dot"),
        ("", 'source_file="/a/b.py" source_line=12', "/a/b.py:12"),
        ("stack_frame_id=1", "stack_frame_id=2", "/home/u/model.py:7"),
        ("", "", ""),
    ],
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_fusion_tells_where_its_collective_comes_from(own, callers, source, is_nested):
    inner = f"""%all-reduce-scatter.3 (q: bf16[16,8]) -> bf16[16,2] {{
  %ar = bf16[16,8] all-reduce(%q), {ON_Y}, to_apply=%add, metadata={{{own}}}
  ROOT %slice = bf16[16,2] dynamic-slice(%ar, %zero, %offset), dynamic_slice_sizes={{16,2}}
}}

%outer (q: bf16[16,8]) -> bf16[16,2] {{
  ROOT %inner = bf16[16,2] fusion(%q), kind=kCustom, calls=%all-reduce-scatter.3
}}

"""
    callee = "outer" if is_nested else "all-reduce-scatter.3"
    fusion = f"  ROOT %f = bf16[16,2] fusion(%p), kind=kCustom, calls=%{callee}, metadata={{{callers}}}"
    (found,) = read(fusion, TABLES + (inner if is_nested else inner.partition("%outer")[0])).collectives
    assert (found.op, found.source) == ("reduce-scatter", source)


BODY = f"""%add (a: f32[], b: f32[]) -> f32[] {{
  ROOT %s = f32[] add(%a, %b)
}}

%inner (q: f32[8]) -> f32[8] {{
  ROOT %i = f32[8] all-reduce(%q), {ON_Y}, to_apply=%add
}}

%more (q: f32[8]) -> pred[] {{
  %m = f32[8] all-gather(%q), {ON_Y}, dimensions={{0}}
  ROOT %r = pred[] compare(%m, %m), direction=LT
}}

%outer (q: f32[8]) -> f32[8] {{
  %o = f32[8] all-to-all(%q), channel_id=1, replica_groups=[2,4]<=[8], dimensions={{0}}
  ROOT %w = f32[8] while(%o), condition=%more, body=%inner, backend_config={{"known_trip_count":{{"n":"3"}}}}
}}

"""


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("while(%p), condition=%cond, body=%outer, backend_config={\"known_trip_count\":{\"n\":\"5\"}}",
         {"all-to-all": 5, "all-reduce": 15, "all-gather": 20}),
        ('while(%p), condition=%cond, body=%outer, backend_config="{\\"known_trip_count\\":{\\"n\\":\\"5\\"}}"',
         {"all-to-all": 5, "all-reduce": 15, "all-gather": 20}),
        ("while(%p), condition=%cond, body=%outer", {"all-to-all": None, "all-reduce": None, "all-gather": None}),
        ('while(%p), condition=%cond, body=%outer, backend_config={"known_trip_count":{"n":"0"}}',
         {}),
        ("call(%p), to_apply=%outer", {"all-to-all": 1, "all-reduce": 3, "all-gather": 4}),
        ("fusion(%p), kind=kLoop, calls=%outer", {"all-to-all": 1, "all-reduce": 3, "all-gather": 4}),
        ("conditional(%x, %p, %p), branch_computations={%inner, %outer}",
         {"all-to-all": 1, "all-reduce": 4, "all-gather": 4}),
        ("conditional(%x, %p, %p), true_computation=%outer, false_computation=%inner",
         {"all-to-all": 1, "all-reduce": 4, "all-gather": 4}),
        ('custom-call(%p), custom_call_target="x", called_computations={%outer}',
         {"all-to-all": 1, "all-reduce": 3, "all-gather": 4}),
    ],
)  # fmt: skip
def test_how_often(line, counts):
    found = read(f"  ROOT %r = f32[8] {line}", BODY)
    assert {collective.op: collective.count for collective in found.collectives} == counts
    assert {collective.in_branch for collective in found.collectives} <= {line.startswith("conditional")}


def test_two_calls_are_one_record_in_program_order():
    found = read(
        "  %a = f32[8] call(%p), to_apply=%inner\n"
        f"  %g = f32[8] all-gather(%a), {ON_Y}, dimensions={{0}}\n"
        "  ROOT %b = f32[8] call(%g), to_apply=%inner",
        BODY,
    )
    assert [(c.op, c.count) for c in found.collectives] == [("all-reduce", 2), ("all-gather", 1)]


def test_a_call_in_a_string_does_not_count():
    found = read('  ROOT %r = f32[8] add(%p, %p), metadata={op_name="x, calls=%inner"}', BODY)
    assert found.collectives == ()
    assert found.unread == ("3 collectives are in computations that nothing calls",)


def test_calls_in_a_circle_end():
    text = f"%a (q: f32[8]) -> f32[8] {{\n  %c = f32[8] all-reduce(%q), {ALL}\n  %x = f32[8] call(%c), to_apply=%b\n}}\n\n"
    text += text.replace("%a (", "%B (").replace("to_apply=%b", "to_apply=%a").replace("%B (", "%b (")
    found = read("  ROOT %r = f32[8] call(%p), to_apply=%a", text)
    assert [collective.count for collective in found.collectives] == [1, 1]


@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        ('metadata={op_name="jit(f)/psum" source_file="/a/b.py" source_line=12}', "/a/b.py:12"),
        ('metadata={op_name="jit(f)/psum" stack_frame_id=2}', "/home/u/model.py:40"),
        ('metadata={op_name="jit(f)/psum" stack_frame_id=9}', "jit(f)/psum"),
        ('metadata={op_name="jit(f)/psum"}', "jit(f)/psum"),
        ('metadata={op_name="say \\"hi\\", source_line=3"}', 'say "hi", source_line=3'),
        ("", ""),
    ],
)
def test_source(metadata, source):
    assert only(f"  %c = f32[8] all-reduce(%p), {ALL}, to_apply=%add, {metadata}", TABLES).source == source


@pytest.mark.parametrize(
    ("header", "attributes", "groups", "axes"),
    [
        ("num_partitions=8", "channel_id=1, replica_groups={}, use_global_device_ids=true", 1, ("X", "Y")),
        ("replica_count=8", "replica_groups={}", 1, ("X", "Y")),
        ("replica_count=8", "replica_groups={{0,1,2,3},{4,5,6,7}}", 2, ("Y",)),
        ("replica_count=2, num_partitions=4", "replica_groups={{0,1}}", 4, ("X",)),
        ("replica_count=2, num_partitions=4", "channel_id=1, replica_groups={{0},{1}}", 2, ("Y",)),
    ],
)
def test_replicas_and_partitions(header, attributes, groups, axes):
    text = f"HloModule m, {header}\n\nENTRY %e (p: f32[8]) -> f32[8] {{\n  %c = f32[8] all-reduce(%p), {attributes}\n}}\n"
    (found,) = read_hlo(text, XY).collectives
    assert found.groups is not None
    assert (len(found.groups), found.axes) == (groups, axes)


def test_ids_are_positions_in_the_mesh_and_groups_are_devices():
    mesh = Mesh(("X", "Y"), (2, 4), (3, 1, 4, 0, 5, 7, 2, 6))
    (found,) = read_hlo(module(f"  %c = f32[8] all-reduce(%p), {ON_Y}"), mesh).collectives
    assert found.axes == ("Y",)
    assert found.groups == ((3, 1, 4, 0), (5, 7, 2, 6))
    (plain,) = read_hlo(module(f"  %c = f32[8] all-reduce(%p), {ON_Y}")).collectives
    assert (plain.axes, plain.groups) == ((), ((0, 1, 2, 3), (4, 5, 6, 7)))


def test_many_devices_have_axes_but_no_list():
    text = module("  %c = f32[8] all-reduce(%p), channel_id=1, replica_groups=[65536,16]<=[16,65536]T(1,0),"
                  " use_global_device_ids=true").replace("num_partitions=8", "num_partitions=1048576")  # fmt: skip
    (found,) = read_hlo(text, Mesh(("data", "model"), (16, 65536))).collectives
    assert (found.axes, found.groups, found.group_size) == (("data",), None, 16)
    assert found.group_count == 65536


def test_a_mesh_of_another_size():
    with pytest.raises(QuestionError) as raised:
        read_hlo(module(""), Mesh(("X",), (4,)))
    assert raised.value.message == "'m' runs on 8 devices, the mesh X=4 has 4"
    assert raised.value.hint == "give a mesh of 8 devices"


@pytest.mark.parametrize("text", ["", " ", "hello world", "{" * 100, "a = b", "\x00\x01", "all-reduce("])
def test_what_is_no_hlo(text):
    with pytest.raises(NotationError, match="this is not HLO text") as raised:
        read_hlo(text)
    assert raised.value.hint


def test_loose_instructions_are_read():
    (found,) = read_hlo(f"%c = f32[8] all-gather(%p), {ON_Y}, dimensions={{0}}", XY).collectives
    assert (found.axes, found.operand_shape) == (("Y",), (2,))


def test_a_text_that_breaks_off_gives_what_is_there():
    text = module(f"  %a = f32[8] all-reduce(%p), {ALL}\n  %b = f32[8] all-reduce(%a), {ALL}")
    cut = read_hlo(text[: text.index("%b") + 20], XY)
    assert [collective.name for collective in cut.collectives] == ["a"]
    assert cut.unread == ("the text breaks off inside 'main'",)


def test_what_cannot_be_read_is_told():
    found = read(f"  %a = f32[8] all-reduce(%p), {ALL}\n  %b = q7[8] all-reduce(%a), {ALL}\n"
                 "  %c = f32[8] all-reduce(%a), replica_groups=[3,3]<=[8]")  # fmt: skip
    assert [collective.name for collective in found.collectives] == ["a"]
    assert found.unread == (
        "line 5: 'b' cannot be read: unknown element type q7 at character 1 of 'q7[8]'",
        "line 6: 'c' cannot be read: 3 groups of 3 are not the 8 ids of the iota at character 1 of '[3,3]<=[8]'",
    )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("f32[8] ragged-all-to-all(%i, %p, %a, %a, %a, %a), channel_id=1, replica_groups=[2,4]<=[8]",
         "the shape of what is sent is not in the text at character 2 of '%i, %p, %a, %a, %a, %a)'"),
        ("(f32[8], bf16[8]) collective-permute(%i, %o, %a, %a), source_target_pairs={{0,1}}, slice_sizes={{1},{1},{2}}",
         "slices of arrays of several types cannot be told apart at character 1 of '{1},{1},{2}'"),
    ],
)  # fmt: skip
def test_bytes_that_the_text_does_not_tell(line, complaint):
    found = read(f"  ROOT %c = {line}")
    assert (found.unread, found.unread_collectives) == ((f"line 4: 'c' cannot be read: {complaint}",), 1)


def test_literals_of_several_lines_do_not_end_a_computation():
    body = (
        f"  %k = f32[2,2] constant({{\n  {{ 1, 2 }},\n  {{ 3, 4 }}\n}})\n  %c = f32[8] all-reduce(%p), {ALL}"
    )
    assert only(body).name == "c"


def test_two_modules_in_one_text():
    text = module("  ROOT %r = f32[8] call(%p), to_apply=%outer", BODY)
    once, twice = read_hlo(text, XY), read_hlo(text + "\n" + text, XY)
    assert twice.collectives == once.collectives * 2


def test_branches_come_in_the_order_in_which_they_are_defined():
    names = [f"branch.{number}" for number in range(8)]
    bodies = "".join(
        f"%{name} (p: f32[8]) -> f32[8] {{\n  %p.{name} = f32[8] parameter(0)\n"
        f"  ROOT %of.{name} = f32[8] all-reduce(%p.{name}), replica_groups={{}}\n}}\n\n"
        for name in names
    )
    called = ", ".join(f"%{name}" for name in names)
    text = (
        f"HloModule m, num_partitions=8\n\n{bodies}ENTRY %e (i: s32[], x: f32[8]) -> f32[8] {{\n"
        "  %i = s32[] parameter(0)\n  %x = f32[8] parameter(1)\n"
        f"  ROOT %c = f32[8] conditional(%i{', %x' * 8}), branch_computations={{{called}}}\n}}\n"
    )
    assert [each.name for each in read_hlo(text).collectives] == [f"of.{name}" for name in names]


@pytest.mark.parametrize(
    "line",
    [
        "%r = f32[8] while(%p), condition=%test, body=%layers",
        "%r = f32[8] conditional(%p, %p), branch_computations={%layers, %test}",
        "%r = (f32[8], f32[2], u32[]) async-start(%p), calls=%layers",
    ],
)
def test_an_entry_alone_says_that_it_lacks_what_it_runs(line):
    """As pasted without the computations above it: what they send is not nothing."""
    entry = f"ENTRY %main (p: f32[8]) -> f32[8] {{\n  %p = f32[8] parameter(0)\n  {line}\n}}\n"
    (complaint,) = read_hlo(f"HloModule m, num_partitions=8\n\n{entry}").unread
    assert complaint.startswith("the text lacks 'layers'")
    layers = "%layers (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n}\n"
    assert not any("'layers'" in each for each in read_hlo(f"HloModule m\n\n{layers}\n{entry}").unread)


def test_circles_of_objects_are_searched_for_again_after_reading(monkeypatch):
    seen = []
    monkeypatch.setattr("shardviz.hlo.module.is_hlo", lambda _: seen.append(gc.isenabled()))
    with pytest.raises(NotationError):
        read_hlo("no HLO")
    assert seen == [False]
    assert gc.isenabled()
