# ruff: noqa: E501 - a compiler's line cannot be broken
"""Mangled, cut and hostile texts: what can be read is read, nothing but a `ShardvizError` escapes, quickly."""

from __future__ import annotations

import contextlib
import random
import time
from pathlib import Path

import pytest

from shardviz.errors import NotationError, ShardvizError
from shardviz.hlo import read, read_hlo, read_shardy
from shardviz.sharding import Mesh

XY = Mesh(("X", "Y"), (2, 4))
HLO = """HloModule jit_f, is_scheduled=true, replica_count=1, num_partitions=8

FileNames
1 "/home/u/model.py"

FileLocations
1 {file_name_id=1 function_name_id=1 line=38 end_line=38 column=24 end_column=24}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%add (a: f32[], b: f32[]) -> f32[] {
  ROOT %s = f32[] add(%a, %b), metadata={op_name="add" stack_frame_id=1}
}

%body.3 (q: (s32[], f32[4,4])) -> (s32[], f32[4,4]) {
  %q = (s32[], f32[4,4]{1,0}) parameter(0)
  %g = f32[4,4]{1,0:T(8,128)(2,1)S(1)} get-tuple-element(%q), index=1
  %r = f32[4,4]{1,0} all-reduce(%g), channel_id=1, replica_groups=[4,2]<=[2,4]T(1,0), use_global_device_ids=true, to_apply=%add, metadata={op_name="jit(f)/psum" source_file="a.py" source_line=4}
  ROOT %t = (s32[], f32[4,4]{1,0}) tuple(%i, %r)
}

ENTRY %main (p: f32[4,4]) -> f32[4,4] {
  %w = (s32[], f32[4,4]{1,0}) while(%t), condition=%cond, body=%body.3, backend_config={"known_trip_count":{"n":"5"}}
  %s = (f32[4,4], f32[16,4]) all-gather-start(%x), channel_id=2, replica_groups=mesh['axis_0'=2,'axis_1'=4] {'axis_1':(1)2}, dimensions={0}, use_global_device_ids=true
  %d = f32[16,4] all-gather-done(%s)
  %p.1 = f32[4,4] collective-permute(%d), channel_id=3, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  ROOT %a = (f32[2], /*index=1*/f32[2]) all-to-all(%p.1, %p.1), channel_id=4, replica_groups={{0,4},{1,5},{2,6},{3,7}}
}
"""
SHARDY = """module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=2, "Y"=4]> {stablehlo.mesh = {axes = [{name = "X", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}) -> (tensor<8x64xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = sdy.all_gather [{}, {"Y":(2)2}] %arg0 out_sharding=<@mesh, [{"X"}, {"Y":(1)2}]> : tensor<8x64xf32>
    %1 = sdy.collective_permute %0 out_sharding=<@mesh, [{"Y":(1)2}, {"X"}]> : tensor<8x64xf32>
    %2:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %1) : tensor<i32>, tensor<8x64xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"X"}, {"Y"}]>]>}
    cond {
      %n = stablehlo.constant dense<5> : tensor<i32>
      %3 = stablehlo.compare LT, %iterArg, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = func.call @layer(%iterArg_0) : (tensor<8x64xf32>) -> tensor<8x64xf32>
      %4 = stablehlo.add %iterArg, %n : tensor<i32>
      stablehlo.return %4, %3 : tensor<i32>, tensor<8x64xf32>
    }
    return %2#1 : tensor<8x64xf32>
  }
  func.func private @layer(%arg0: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}) -> tensor<8x64xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"X"}, {"Y"}]>] out_shardings=[<@mesh, [{"X"}, {}]>] manual_axes={"X"} (%arg1: tensor<4x64xf32>) {
      %1 = sdy.all_to_all [{"Y"}: 1->0] %arg1 out_sharding=<@mesh, [{"Y"}, {}]> : tensor<4x64xf32>
      %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        stablehlo.return %a : tensor<f32>
      }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"Y"}, {}]>]>} : (tensor<4x64xf32>) -> tensor<4x64xf32>
      sdy.return %2 : tensor<4x64xf32>
    } : (tensor<8x64xf32>) -> tensor<8x64xf32>
    return %0 : tensor<8x64xf32>
  }
}
"""
PIECES = [
    "{", "}", "(", ")", "[", "]", "<", ">", '"', "\\", "\n", ",", "=", " = ", "%", "0", "1", "9" * 30, "-1", "{{", "}}",
    "\x00", "é", "\u2028", "all-reduce(", "all-gather-start(", "replica_groups=", "[2,4]<=[8]", "T(1,0)", "f32[8]",
    "()", "calls=%main", "body=%body.3", "ENTRY ", "HloModule ", "sdy.all_gather ", "<@mesh, [", '{"X"}', '"Y":(1)2',
    "tensor<8xf32>", "->", "0->1", "cond {", "} do {", "func.func @main(", "call @main", "{}", "mesh['a'=2] {'a'}",
    "known_trip_count", "stack_frame_id=1", "\t", "9" * 5000,
]  # fmt: skip


def mangled(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randrange(len(text) + 1), rng.choice((0, 1, 1, 3, 10, 100))
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + text[at + length :]
        elif kind == 1:
            text = text[:at] + rng.choice(PIECES) + text[at + length :]
        elif kind == 2:
            other = rng.randrange(len(text) + 1)
            text = text[:at] + text[other : other + length] + text[at:]
        else:
            text = text[: max(at, 100)]
    return text


@pytest.mark.parametrize("reader", [read_hlo, read_shardy, read])
@pytest.mark.parametrize("source", [HLO, SHARDY], ids=["hlo", "shardy"])
def test_mangled_texts(reader, source):
    rng = random.Random(f"{reader.__name__} {len(source)}")
    fine, messages = 0, []
    for _ in range(120):
        text = mangled(source, rng)
        try:
            module = reader(text, rng.choice((None, XY, XY)))
        except ShardvizError as error:
            messages.append(error.message)
        else:
            fine += 1
            for collective in module.collectives:
                assert collective.bytes >= 0
                assert collective.wire_bytes >= 0
    assert all(message and "\n" not in message and len(message) < 500 for message in messages)
    if reader is read:
        assert fine > 70


@pytest.mark.parametrize("source", [HLO, SHARDY], ids=["hlo", "shardy"])
def test_every_cut_gives_what_stands_before_it(source):
    whole = read(source, XY)
    assert whole.unread == ()
    seen = 0
    for end in range(source.index("{\n"), len(source), 29):
        try:
            module = read(source[:end], XY)
        except ShardvizError:
            continue
        seen = max(seen, len(module.collectives))
        assert len(module.collectives) <= len(whole.collectives)
    # The last line may be cut.
    assert seen >= len(whole.collectives) - 1


MEGABYTE = 1_000_000
HOSTILE = {
    "braces": "{" * MEGABYTE,
    "parentheses": "%a = " + "(" * MEGABYTE + " all-reduce(",
    "closed": "}\n" * (MEGABYTE // 2),
    "headers": "x {\n" * (MEGABYTE // 4),
    "bodies": "x {\n}\n" * (MEGABYTE // 6),
    "one line of opcodes": " all-gather(" * (MEGABYTE // 12),
    "lines of opcodes": "  %a = f32[8] all-gather(\n" * (MEGABYTE // 26),
    "unknown operands": "  %a = f32[8]{0} all-reduce(%b)\n" * (MEGABYTE // 32),
    "quotes": '  %a = f32[8] all-reduce(%b), metadata={op_name="' + '\\"' * (MEGABYTE // 2),
    "group keys": "  %a = f32[8] all-reduce(%b), " + "replica_groups={" * (MEGABYTE // 16),
    "one long group": "  %a = f32[8] all-reduce(%b), replica_groups={{" + "0," * (MEGABYTE // 2) + "}}",
    "mesh axes": "  %a = f32[8] all-reduce(%b), replica_groups=mesh[" + "'a'=2," * (MEGABYTE // 6) + "] {'a'}",
    "10 MB of parentheses": "%a = " + "(" * 10 * MEGABYTE + " all-reduce(",
    "digits": "  %a = f32[" + "9" * MEGABYTE + "] all-reduce(%b)",
    "sizes": "  %a = f32[" + "9," * (MEGABYTE // 2) + "] all-reduce(%b)",
    "iota": "  %a = f32[8] all-reduce(%b), replica_groups=[1,1099511627776]<=[1099511627776]",
    "branches": "ENTRY %e {\n  %c = f32[8] conditional(%p), branch_computations={" + "%a, " * (MEGABYTE // 4)
    + "}\n}\n%a {\n  %y = f32[2] all-reduce(%x)\n}\n",
    "a chain of calls": "".join(
        f"%c{i} {{\n  %y = f32[2] all-reduce(%x)\n  %z = f32[2] fusion(%y), calls=%c{i - 1}\n}}\n" for i in range(12000)
    ),
    "calls that double": "".join(
        f"%c{i} {{\n  %x = f32[2] all-reduce(%q)\n  %y = f32[2] fusion(%x), calls=%c{i - 1}\n"
        f"  %z = f32[2] fusion(%y), calls=%c{i - 1}\n}}\n"
        for i in range(9000)
    ),
    "loops in loops": "%b0 {\n  ROOT %y = s32[] all-reduce(%p)\n}\n\n"
    + "".join(
        f"%b{i} {{\n  %p = s32[] parameter(0)\n  ROOT %w = s32[] while(%p), condition=%b{i - 1}, body=%b{i - 1}\n}}\n\n"
        for i in range(1, 6000)
    ),
    "a counter that doubles": "%c {\n  %p = s32[] parameter(0)\n"
    + "".join(f"  %a{i} = s32[] add(%a{i - 1}, %a{i - 1})\n" for i in range(20000))
    + "  ROOT %x = pred[] compare(%a19999, %p), direction=LT\n}\n\n%b {\n  ROOT %y = s32[] all-reduce(%p)\n}\n\nENTRY %e {\n"
    + "".join(f"  %w{i} = s32[] while(%p), condition=%c, body=%b\n" for i in range(5000)),
    "permutes of a million devices": "HloModule m, num_partitions=1000000\n"
    + "".join(
        f"  %p{i} = f32[8] collective-permute(%x), channel_id=1, source_target_pairs={{{{{i},{i + 1}}}}}\n"
        for i in range(10000)
    ),
    "calls of one name": "%a {\n  %x = f32[2] fusion(), calls=%a\n  %y = f32[2] all-reduce(%x)\n}\n" * (MEGABYTE // 70),
}  # fmt: skip
HOSTILE_MLIR = {
    "regions": "{\n" * (MEGABYTE // 2),
    "loops": "%0 = stablehlo.while(%a = %b) : tensor<i32>\ncond {\n%c = sdy.all_reduce {} %a out_sharding=<@m, []> "
    ": tensor<f32>\n" * (MEGABYTE // 130),
    "calls": "call @main()\n" * (MEGABYTE // 13),
    "lists of axes": "%0 = sdy.all_gather [" + "{}, " * (MEGABYTE // 4),
    "axes": 'sdy.mesh @mesh = <["X"=2]>\n%0 = sdy.all_reduce {'
    + '"X", ' * (MEGABYTE // 5)
    + "} %a out_sharding=<@mesh, []>"
    " : tensor<f32>",
    "meshes": "sdy.mesh @m = <[" + '"a"=2,' * (MEGABYTE // 6) + "]>\n",
    "arguments": "func.func @f(" + "%a: tensor<8xf32>, " * (MEGABYTE // 19) + ") {\n",
    "permutes": 'sdy.mesh @mesh = <["X"=2]>\n'
    + '%0 = sdy.collective_permute %0 out_sharding=<@mesh, [{"X"}]> : tensor<8xf32>\n' * (MEGABYTE // 80),
    "dense": '%0 = "stablehlo.all_gather"(%a) <{replica_groups = dense<' + "[[0, 1], " * (MEGABYTE // 9),
    "parentheses": "func.func @f" + "(" * MEGABYTE,
    "quotes": "func.func @f(" + '"' * MEGABYTE,
    "sizes": "%0 = sdy.all_reduce {} %a out_sharding=<@m, []> : tensor<" + "9x" * (MEGABYTE // 2) + "f32>",
}


def seconds(reader, text: str) -> float:
    start = time.process_time()
    with contextlib.suppress(ShardvizError):
        reader(text, XY)
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_hostile_hlo_takes_seconds_at_most(name):
    assert seconds(read_hlo, "HloModule m, num_partitions=8\n" + HOSTILE[name]) < 20


NOT_HLO = {
    "nothing": "",
    "spaces": " " * 4 * MEGABYTE,
    "empty lines": "\n" * MEGABYTE,
    "brackets": "[" * 4 * MEGABYTE,
    "braces on lines": "{\n" * MEGABYTE,
    "parentheses": "(" * 4 * MEGABYTE,
    "quotes": '"' * 4 * MEGABYTE,
    "a binary file": "\x7fELF\x02\x01\x01" + "".join(map(chr, range(256))) * 40_000,
    "undecodable bytes": b"\xff\xfe\x00HLO\xc3".decode("utf-8", "surrogateescape") * MEGABYTE,
    "another language": "def f(x):\n    return x\n" * 40_000,
}


@pytest.mark.parametrize("name", NOT_HLO)
def test_what_is_not_hlo_is_refused(name):
    start = time.process_time()
    for reader in (read, read_hlo, read_shardy):
        with pytest.raises(NotationError) as refused:
            reader(NOT_HLO[name])
        assert refused.value.message.startswith(
            ("this is neither HLO", "this is not HLO", "this is neither Stable")
        )
        assert refused.value.hint
        assert len(refused.value.message) < 500
    assert time.process_time() - start < 60


RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.txt"))


@pytest.mark.parametrize("path", RECORDED, ids=[path.stem for path in RECORDED])
def test_damaged_texts_of_real_compilers(path):
    """Cut anywhere, mangled, lines swapped or lost: what is read is sound, and it takes no time."""
    rng, text = random.Random(path.stem), path.read_text()
    start = time.process_time()
    for turn in range(9):
        if turn % 3 == 0:
            damaged = text[: rng.randrange(len(text))]
        elif turn % 3 == 1:
            damaged = mangled(text, rng)
        else:
            lines = text.splitlines()
            for _ in range(rng.randint(1, 20)):
                lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
            damaged = "\n".join(lines[rng.randint(0, 3) :])
        with contextlib.suppress(ShardvizError):
            module = read(damaged, infer=True)
            assert all(work.name for one in module.collectives for work in one.overlapped)
            assert all(one.bytes >= 0 and (one.count is None or one.count >= 0) for one in module.collectives)
            assert all("\n" not in each for each in module.unread)
    assert time.process_time() - start < 40


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (("[4,2]<=[2,4]", "[4,2]<=[2,5]"), "line 20: 'r' cannot be read: 4 groups of 2 are not the 10 ids"),
        (("T(1,0)", "T(1,1)"), "line 20: 'r' cannot be read: T(1,1) is not a permutation"),
        (("{{0,4},{1,5}", "{{0,44},{1,5}"), "line 29: 'a' cannot be read: there is no device 44 among the 8"),
        (("{{0,4},{1,5}", "{{0,4},{1,4}"), "line 29: 'a' cannot be read: device 4 appears twice"),
        (("{{0,4},{1,5}", "{{0,4},{1,-5}"), "line 29: 'a' cannot be read: no device has a negative number"),
        (("[4,2]<=[2,4]T(1,0)", "[4,4]<=[4,4]T(1,0)"), "line 20: 'r' cannot be read: there is no device 15"),
        (("{2,3},{3,0}", "{2,3},{3,8}"), "line 28: 'p.1' cannot be read: there is no device 8 among the 8"),
        (
            ("  %p.1 = ", "  %x = f32[4,4] add(%d, %d) %p.1 = "),
            "line 28: a collective shares its line with another",
        ),
        (("{0,1},{1,2}", "{0,1,1},{1,2}"), "line 28: 'p.1' cannot be read: a permute has pairs"),
        (
            ("'axis_1':(1)2", "'axis_1':(1)3"),
            "line 26: 's' cannot be read: axis axis_1 of size 4 has no part",
        ),
        (
            ("f32[4,4]{1,0} all-reduce", "f99[4,4]{1,0} all-reduce"),
            "line 20: 'r' cannot be read: unknown element",
        ),
        ((HLO[HLO.index("%p.1, %p.1)") :], ""), "line 29: 'a' is cut off"),
    ],
)
def test_what_cannot_be_read_is_told(damage, complaint):
    assert HLO.count(damage[0]) == 1
    for mesh in (XY, None):
        module = read_hlo(HLO.replace(*damage), mesh)
        assert len(module.collectives) == 3
        assert module.unread[0].startswith(complaint)
        assert module.unread_collectives == 1


@pytest.mark.parametrize("cut", ["ENTRY", "%main (p", "f32[4,4] {\n  %w", "  %s = (f"])
def test_what_ran_a_computation_may_be_cut_off(cut):
    """An entry comes last: the collectives before it are told, but not how often they run."""
    module = read_hlo(HLO[: HLO.index(cut)])
    assert [(each.name, each.count) for each in module.collectives] == [("r", 5 if "%s" in cut else None)]
    assert module.unread == (
        "the text breaks off inside 'main'"
        if "%s" in cut
        else "the text breaks off before its ENTRY computation, which runs the others",
    )


@pytest.mark.parametrize("text", ["HloModule m\n", HLO.replace("\n", " "), HLO.replace("\n", "\r")])
def test_a_text_without_lines_is_refused(text):
    for reader in (read, read_hlo):
        with pytest.raises(NotationError, match="no instruction on a line of its own") as refused:
            reader(text)
        assert "line ends" in refused.value.hint


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE_MLIR)
def test_a_megabyte_of_hostile_mlir_takes_seconds_at_most(name):
    assert (
        seconds(lambda text, _: read_shardy(text), "module @m {\nfunc.func @main() {\n" + HOSTILE_MLIR[name])
        < 20
    )


def test_a_computation_that_begins_within_another_is_told():
    """A brace was lost: both are read, as if it stood there."""
    damaged = read_hlo(HLO.replace("}\n\n%body.3", "\n%body.3", 1), XY)
    assert damaged.collectives == read_hlo(HLO, XY).collectives
    assert [note.partition(": ")[2] for note in damaged.unread if "begins before" in note] == [
        "a computation begins before the one above it has ended"
    ]


def test_reading_looks_at_few_lines():
    """A ratio, since machines differ: 12 to 14 times the splitting of the text where it is 110 MB/s."""
    layer = "".join(
        f"  %dot.{i} = bf16[8,128,512]{{2,1,0}} fusion(%add.{i}, %p.{i}), kind=kOutput, calls=%fused_computation.{i}, "
        f'metadata={{op_name="jit(step)/layer_{i}/dot_general" stack_frame_id=1}}\n'
        for i in range(60)
    )
    collective = HLO[HLO.index("  %s = (f32") : HLO.index("  %d = ")]
    text = (
        HLO[: HLO.index("ENTRY")]
        + "ENTRY %main (p: f32[4,4]) -> f32[4,4] {\n"
        + (layer + collective) * 1000
        + "}\n"
    )
    assert len(read_hlo(text, XY).collectives) == 1000
    ratios = []
    for _ in range(5):
        start = time.process_time()
        text.splitlines()
        split = time.process_time() - start
        ratios.append(seconds(read_hlo, text) / split)
    assert min(ratios) < 30
