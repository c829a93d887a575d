"""Text that XLA's own parser reads and prints again, in the forms that it chooses itself."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from jaxlib.version import __version_info__

from shardviz.hlo import HloModule, read_hlo

try:
    from jaxlib import _hlo as xla
except ImportError:
    from jaxlib import _jax as xla

ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\n"
HEADER = f"HloModule m, is_scheduled=true, num_partitions=8\n\n{ADD}"
GROUPS = "channel_id=1, replica_groups=[2,4]<=[8]"
ALL = f"{GROUPS}, use_global_device_ids=true"
PAIRS = "channel_id=1, source_target_pairs={{0,1},{1,0}}"


def reprinted(text: str) -> str:
    return xla.hlo_module_from_text(text).to_string()


def facts(module: HloModule) -> list[object]:
    """All that its records say but for names, which XLA makes unique."""
    assert module.unread == ()
    return [replace(each, name="", overlapped=()) for each in module.collectives]


def parameters(shapes: list[str], letter: str) -> tuple[str, str]:
    """The lines of a computation's parameters, and their names as operands."""
    lines = "".join(f"  {letter}{i} = {shape} parameter({i})\n" for i, shape in enumerate(shapes))
    return lines, ", ".join(f"{letter}{i}" for i in range(len(shapes)))


MATRIX, VECTOR = "f32[64,128]", "f32[64]"


@pytest.mark.parametrize("context", ["", ", u32[]"])
@pytest.mark.parametrize(
    ("operands", "opcode", "attributes", "result", "nbytes"),
    [
        ([MATRIX], "all-reduce", f"{ALL}, to_apply=add", MATRIX, 32768),
        ([MATRIX, VECTOR], "all-reduce", f"{ALL}, to_apply=add", f"({MATRIX}, {VECTOR})", 33024),
        ([MATRIX], "all-gather", f"{ALL}, dimensions={{0}}", "f32[256,128]", 131072),
        ([MATRIX, VECTOR], "all-gather", f"{ALL}, dimensions={{0}}", "(f32[256,128], f32[256])", 132096),
        ([MATRIX], "reduce-scatter", f"{ALL}, dimensions={{0}}, to_apply=add", "f32[16,128]", 32768),
        ([MATRIX, VECTOR], "reduce-scatter", f"{ALL}, dimensions={{0}}, to_apply=add",
         "(f32[16,128], f32[16])", 33024),
        ([MATRIX], "all-to-all", f"{GROUPS}, dimensions={{0}}", MATRIX, 32768),
        ([VECTOR] * 4, "all-to-all", GROUPS, f"({', '.join([VECTOR] * 4)})", 1024),
        ([MATRIX], "collective-broadcast", GROUPS, MATRIX, 32768),
        ([MATRIX], "collective-permute", PAIRS, MATRIX, 32768),
        ([MATRIX, "bf16[8]"], "collective-permute", PAIRS, f"({MATRIX}, bf16[8])", 32784),
    ],
)  # fmt: skip
def test_a_wrapped_collective_is_the_start_that_xla_prints_for_it(
    operands, opcode, attributes, result, nbytes, context
):
    inner, taken = parameters(operands, "q")
    outer, given = parameters(operands, "p")
    started = f"(({', '.join(operands)}), {result}{context})"
    text = (
        f"{HEADER}wrapped {{\n{inner}  ROOT w = {result} {opcode}({taken}), {attributes}\n}}\n\n"
        f"ENTRY e {{\n{outer}  s = {started} async-start({given}), calls=wrapped\n"
        f"  ROOT d = {result} async-done(s)\n}}\n"
    )
    printed = reprinted(text)
    assert f" {opcode}-start(" in printed
    assert "calls=" not in printed
    (found,) = facts(read_hlo(printed))
    assert [found] == facts(read_hlo(text))
    assert (found.op, found.bytes, found.arrays) == (opcode, nbytes, result.count("["))
    assert found.is_async


@pytest.mark.parametrize("operands", [[MATRIX], [MATRIX, VECTOR]])
def test_an_all_reduce_starts_with_its_results_alone(operands):
    lines, given = parameters(operands, "p")
    result = operands[0] if len(operands) == 1 else f"({', '.join(operands)})"
    text = (
        f"{HEADER}ENTRY e {{\n{lines}  s = {result} all-reduce-start({given}), {ALL}, to_apply=add\n"
        f"  ROOT d = {result} all-reduce-done(s)\n}}\n"
    )
    (found,) = facts(read_hlo(reprinted(text)))
    assert (found.bytes, found.arrays) == (32768 + 256 * (len(operands) - 1), len(operands))


BUFFERS = """  i = f32[8,64,128] parameter(0)
  o = f32[8,64,128] parameter(1)
  z = s32[] constant(0)
  at = (s32[], s32[], s32[]) tuple(z, z, z)
  ats = ((s32[], s32[], s32[]), (s32[], s32[], s32[])) tuple(at, at)
  is = (f32[8,64,128], f32[8,64,128]) tuple(i, o)
  os = (f32[8,64,128], f32[8,64,128]) tuple(o, i)
"""
BUFFER = "f32[8,64,128]"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("buffer", "operands", "slices", "nbytes"),
    [
        (BUFFER, "i, o, at, at", "{{1,64,128}}", 32768),
        (BUFFER, "i, o, ats, ats", "{{1,64,128},{2,64,128}}", 3 * 32768),
        (f"({BUFFER}, {BUFFER})", "is, os, ats, ats", "{{1,64,128},{8,64,64}}", 5 * 32768),
    ],
)
def test_a_permute_in_place_moves_its_slices(buffer, operands, slices, nbytes, is_async):
    attributes = f"{PAIRS}, slice_sizes={slices}"
    lines = f"  ROOT c = {buffer} collective-permute({operands}), {attributes}\n"
    if is_async:
        start = f"({buffer}, {buffer}, u32[], u32[]) collective-permute-start({operands}), {attributes}"
        lines = f"  c = {start}\n  ROOT d = {buffer} collective-permute-done(c)\n"
    (found,) = facts(read_hlo(reprinted(f"{HEADER}ENTRY e {{\n{BUFFERS}{lines}}}\n")))
    assert (found.operand_shape, found.result_shape) == ((1, 64, 128), (1, 64, 128))
    assert (found.bytes, found.wire_bytes, found.arrays) == (nbytes, nbytes, slices.count("{") - 1)


@pytest.mark.parametrize("form", ["sync", "async-start", "start"])
@pytest.mark.parametrize(("sent", "nbytes", "wire"), [("f32[8,4]", 128, 96), ("f32[64,4]", 1024, 768)])
def test_a_ragged_all_to_all_sends_no_more_than_its_operand(form, sent, nbytes, wire):
    shapes = [sent, "f32[16,4]", *["s32[4]"] * 4]
    lines, given = parameters(shapes, "p")
    call = f"ragged-all-to-all({given}), {GROUPS}"
    if form == "sync":
        text = f"{HEADER}ENTRY e {{\n{lines}  ROOT c = f32[16,4] {call}\n}}\n"
    else:
        text = (
            f"{HEADER}wrapped {{\n{lines}  ROOT c = f32[16,4] {call}\n}}\n\nENTRY e {{\n{lines}"
            f"  s = (({', '.join(shapes)}), f32[16,4], u32[]) async-start({given}), calls=wrapped\n"
            "  ROOT d = f32[16,4] async-done(s)\n}\n"
        )
    (found,) = facts(read_hlo(reprinted(text) if form == "start" else text))
    assert (found.bytes, found.wire_bytes, found.result_shape) == (nbytes, wire, (16, 4))


def test_two_ragged_all_to_alls_of_one_result_send_what_is_their_own():
    lines, _ = parameters(["f32[8,4]", "f32[4,4]", "f32[16,4]", "s32[4]"], "p")
    calls = "".join(
        f"  c{i} = f32[16,4] ragged-all-to-all(p{i}, p2, p3, p3, p3, p3), {GROUPS}\n" for i in (0, 1)
    )
    text = f"{HEADER}ENTRY e {{\n{lines}{calls}  ROOT t = (f32[16,4], f32[16,4]) tuple(c0, c1)\n}}\n"
    assert [each.bytes for each in facts(read_hlo(reprinted(text)))] == [128, 64]


@pytest.mark.skipif(__version_info__ < (0, 10), reason="XLA's parser knew no meshes in groups")
@pytest.mark.parametrize(
    ("groups", "printed"),
    [
        ("mesh['x'=2,'y'=4] {'1'}", "mesh['x'=2,'y'=4] {'y'}"),
        ("mesh['x'=2,'y'=4] {'1':(2)2,'0'}", "mesh['x'=2,'y'=4] {'y':(2)2,'x'}"),
        ("mesh['1'=2,'0'=4] {'1'}", "mesh['1'=2,'0'=4] {'1'}"),
        ("mesh['my axis'=2,'b]}'=4] {'my axis','b]}':(1)2}",
         "mesh['my axis'=2,'b]}'=4] {'my axis','b]}':(1)2}"),
        ("mesh['x'=2, 'y'=4], device_ids=([2,2,2]T(2,0,1)) {'1'}",
         "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y'}"),
        ("mesh['x'=2,'y'=4], device_ids=([8]) {'y'}", "mesh['x'=2,'y'=4] {'y'}"),
    ],
)  # fmt: skip
def test_axes_are_those_that_xla_names(groups, printed):
    text = (
        f"{HEADER}ENTRY e {{\n  p = {MATRIX} parameter(0)\n  ROOT c = {MATRIX} all-reduce(p), channel_id=1, "
    )
    text += f"replica_groups={groups}, use_global_device_ids=true, to_apply=add\n}}\n"
    again = reprinted(text)
    assert f"replica_groups={printed}, use_global" in again
    assert read_hlo(text, infer=True) == read_hlo(again, infer=True)
    assert facts(read_hlo(text, infer=True))


ODD = f"""{HEADER}ENTRY %e (p: f32[16,4]) -> (f32[4,4], f32[16]) {{
  %p = f32[16,4]{{1,0}} parameter(0)
  %v = f32[16]{{0}} constant({{...}})
  %rs = f32[4,4]{{1,0:T(8,128)}} reduce-scatter(%p), channel_id=1, \
replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}, use_global_device_ids=true, dimensions={{0}}, to_apply=%add
  %ag = f32[32,4]{{1,0}} all-gather(%p), channel_id=2, \
replica_groups=[4,2]<=[2,4]T(1,0), use_global_device_ids=true, dimensions={{0}}
  %ar = (f32[16,4]{{1,0}}, /*index=1*/f32[16]{{0}}) all-reduce(%p, %v), {ALL}, to_apply=%add
  %cp = f32[16,4]{{1,0}} collective-permute(%p), {PAIRS}, metadata={{op_name="a = b all-gather(x)"}}
  %x = f32[16]{{0}} get-tuple-element(%ar), index=1
  ROOT %r = (f32[4,4]{{1,0}}, f32[16]{{0}}) tuple(%rs, %x)
}}
"""
WORD = re.compile(r'"[^"]*"|/\*.*?\*/|->|<=|[\w%.-]+=?|\s+|.', re.DOTALL)


def told(text: str) -> list[object]:
    """What its collectives send, whatever stands between the words; where they come from left out."""
    return [
        replace(each, name="", op_name="", source="", overlapped=()) for each in read_hlo(text).collectives
    ]


@pytest.mark.parametrize(
    ("written", "odd"),
    [
        ("{1,0:T(8,128)} reduce-scatter(", "{1,0:T(8,128)}reduce-scatter("),
        ("{1,0:T(8,128)} reduce-scatter(", "{1,0:T(8,128)}/*c*/reduce-scatter("),
        ("f32[4,4]{1,0:T(8,128)} reduce", "f32 [ 4, 4 ] { 1 ,0 : T(8, 128) }\treduce"),
        ("all-gather(%p)", "all-gather ( %p )"),
        ("f32[32,4]{1,0} all-gather", "f32[32,4]all-gather"),
        ("%ag = f32[32,4]", "%ag=f32[32,4]"),
        ("(f32[16,4]{1,0}, /*index=1*/f32[16]{0}) all-reduce", "(f32 [16,4]{1,0},f32[16] {0})all-reduce"),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", "replica_groups= [4 ,2] <= [2, 4] T (1, 0)"),
        ("{{0,1,2,3},{4,5,6,7}}", "{ {0, 1,2,3} , { 4,5,6,7 } }"),
        ("dimensions={0}, to_apply", "dimensions= { 0 } ,to_apply"),
        ("ENTRY %e", "ENTRY  %e"),
        ("metadata={op", "metadata= { op"),
    ],
)
def test_spaces_that_xla_takes(written, odd):
    text = ODD.replace(written, odd)
    assert text != ODD
    assert reprinted(text)
    assert read_hlo(text).unread == ()
    assert told(text) == told(ODD)
    assert len(told(ODD)) == 4


def test_blanks_anywhere_are_read_or_told():
    """Where a blank comes or goes and XLA still reads the text, all collectives are found, or it is said."""
    random_ = random.Random(27)
    words = WORD.findall(ODD)
    expected, accepted, complete = told(ODD), 0, 0
    for _ in range(100):
        changed = [*words]
        for place in random_.sample(range(words.index("ENTRY"), len(words)), 2):
            word = changed[place]
            blank = random_.choice((" ", "\t", "  ", "\n", "/*c*/"))
            changed[place] = random_.choice(("", blank)) if word.isspace() else blank + word
        text = "".join(changed)
        try:
            reprinted(text)
        except Exception:
            continue
        accepted += 1
        unread = read_hlo(text).unread
        complete += not unread
        assert unread or [each.op for each in told(text)] == [each.op for each in expected], text
        assert unread or [each.bytes for each in told(text)] == [each.bytes for each in expected], text
    assert accepted > 60
    assert complete > 0.9 * accepted


@pytest.mark.parametrize("groups", ["{{},{}}", "{{}}", "{ { } , {} }"])
def test_groups_without_devices_are_one_of_all(groups):
    text = ODD.replace("{{0,1,2,3},{4,5,6,7}}", groups)
    assert reprinted(text)
    assert read_hlo(text).unread == ()
    assert told(text) == told(ODD.replace("{{0,1,2,3},{4,5,6,7}}", "{}"))


def test_a_group_without_devices_beside_others_is_told():
    text = ODD.replace("{{0,1,2,3},{4,5,6,7}}", "{{0,1,2,3,4,5,6,7},{}}")
    assert len(told(text)) == 3
    assert "a group has no devices" in read_hlo(text).unread[0]
