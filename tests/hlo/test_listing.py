# ruff: noqa: E501 - a compiler's line cannot be broken
"""Programs as lines to read: what is folded, what is marked, and which start belongs to which done."""

from __future__ import annotations

import time

import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo.listing import Listing, list_hlo
from shardviz.sharding import Mesh

XY = Mesh(("X", "Y"), (2, 4))
TPU = """HloModule jit_f, is_scheduled=true, num_partitions=8

%start (p: bf16[1,512,1024]) -> (bf16[1,512,1024], bf16[1,1024,1024], u32[]) {
  %p = bf16[1,512,1024]{2,1,0:T(8,128)(2,1)S(1)} parameter(0)
  %all-gather.27 = bf16[1,1024,1024]{2,1,0:T(8,128)(2,1)} all-gather(%p), channel_id=11, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={1}, use_global_device_ids=true, backend_config={"async_collective_fusion_config":{}}
  ROOT %custom-call.1 = (bf16[1,512,1024]{2,1,0}, bf16[1,1024,1024]{2,1,0}, u32[]{:S(2)}) custom-call(%all-gather.27), custom_call_target="AsyncCollectiveStart"
}

%matmul (a: bf16[512,1024], b: bf16[1024,1024]) -> bf16[512,1024] {
  %a = bf16[512,1024]{1,0:T(8,128)(2,1)} parameter(0)
  %b = bf16[1024,1024]{1,0:T(8,128)(2,1)} parameter(1)
  ROOT %convolution.18 = bf16[512,1024]{1,0:T(8,128)(2,1)S(1)} convolution(%a, %b), dim_labels=bf_io->bf
}

%middle (q: bf16[1,512,1024], x: bf16[512,1024], w: bf16[1024,1024]) -> (bf16[512,1024], bf16[1,1024,1024]) {
  %q = bf16[1,512,1024]{2,1,0:T(8,128)(2,1)S(1)} parameter(0)
  %x = bf16[512,1024]{1,0:T(8,128)(2,1)S(1)} parameter(1)
  %w = bf16[1024,1024]{1,0:T(8,128)(2,1)} parameter(2)
  %fusion.61 = bf16[512,1024]{1,0:T(8,128)(2,1)S(1)} fusion(%x, %w), kind=kOutput, calls=%matmul
  %all-gather.29 = bf16[1,1024,1024]{2,1,0:T(8,128)(2,1)S(1)} all-gather(%q), channel_id=11, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={1}, use_global_device_ids=true, backend_config={"async_collective_fusion_config":{}}
  ROOT %tuple.5 = (bf16[512,1024]{1,0}, bf16[1,1024,1024]{2,1,0}) tuple(%fusion.61, %all-gather.29)
}

%done (r: bf16[1,512,1024], s: bf16[1,1024,1024]) -> bf16[1,1024,1024] {
  %r = bf16[1,512,1024]{2,1,0:T(8,128)(2,1)S(1)} parameter(0)
  %s = bf16[1,1024,1024]{2,1,0:T(8,128)(2,1)S(1)} parameter(1)
  %all-gather.31 = bf16[1,1024,1024]{2,1,0:T(8,128)(2,1)} all-gather(%r), channel_id=11, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={1}, use_global_device_ids=true, backend_config={"async_collective_fusion_config":{}}
  ROOT %custom-call.3 = bf16[1,1024,1024]{2,1,0:T(8,128)(2,1)S(1)} custom-call(%r, %s, %all-gather.31), custom_call_target="AsyncCollectiveDone"
}

ENTRY %main (param: bf16[1,512,1024], param.1: bf16[512,1024], param.2: bf16[1024,1024]) -> bf16[1,1024,1024] {
  %param = bf16[1,512,1024]{2,1,0:T(8,128)(2,1)} parameter(0)
  %param.1 = bf16[512,1024]{1,0:T(8,128)(2,1)} parameter(1)
  %param.2 = bf16[1024,1024]{1,0:T(8,128)(2,1)} parameter(2)
  %async-collective-start = (bf16[1,512,1024]{2,1,0:T(8,128)(2,1)S(1)}, bf16[1,1024,1024]{2,1,0:T(8,128)(2,1)S(1)}, u32[]{:S(2)}) fusion(%param), kind=kCustom, calls=%start
  %get-tuple-element.6 = bf16[1,512,1024]{2,1,0:T(8,128)(2,1)S(1)} get-tuple-element(%async-collective-start), index=0
  %fusion.53 = (bf16[512,1024]{1,0:T(8,128)(2,1)S(1)}, bf16[1,1024,1024]{2,1,0:T(8,128)(2,1)S(1)}) fusion(%get-tuple-element.6, %param.1, /*index=2*/%param.2), kind=kOutput, calls=%middle, backend_config={"estimated_cycles":"23814"}
  %get-tuple-element.17 = bf16[1,1024,1024]{2,1,0:T(8,128)(2,1)S(1)} get-tuple-element(%fusion.53), index=1
  ROOT %async-collective-done = bf16[1,1024,1024]{2,1,0:T(8,128)(2,1)S(1)} fusion(%get-tuple-element.6, %get-tuple-element.17), kind=kCustom, calls=%done
}
"""
GPU = """HloModule jit_g, is_scheduled=true, num_partitions=8

%wrapped (p: f32[8,16]) -> f32[2,16] {
  %p = f32[8,16]{1,0} parameter(0)
  ROOT %reduce-scatter.3 = f32[2,16]{1,0} reduce-scatter(%p), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, dimensions={0}, to_apply=%add
}

ENTRY %main (p: f32[8,16]) -> f32[2,16] {
  %p.1 = f32[8,16]{1,0} parameter(0)
  %rs-start = ((f32[8,16]{1,0}), f32[2,16]{1,0}) async-start(%p.1), calls=%wrapped
  %copy.1 = f32[8,16]{1,0} copy(%p.1)
  %rs-update = ((f32[8,16]{1,0}), f32[2,16]{1,0}) async-update(%rs-start)
  ROOT %rs-done = f32[2,16]{1,0} async-done(%rs-update)
}
"""
SLICES = """HloModule jit_h, is_scheduled=true, num_partitions=16

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %token = token[] after-all()
  %send = (f32[4]{0}, u32[], token[]) send(%p, %token), channel_id=2, is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="all-reduce.1_0",_xla_megascale_reduce_operation="SUM",_xla_megascale_target="{1,2}x{0:15}",_xla_megascale_transfer_type="ALL_REDUCE"}
  %recv = (f32[4]{0}, u32[], token[]) recv(%token), channel_id=1, is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="all-reduce.1_0",_xla_megascale_reduce_operation="SUM",_xla_megascale_target="{1,2}x{0:15}",_xla_megascale_transfer_type="ALL_REDUCE"}
  %send-done = token[] send-done(%send), channel_id=2, is_host_transfer=true
  %recv-done = (f32[4]{0}, token[]) recv-done(%recv), channel_id=1, is_host_transfer=true
  ROOT %out = f32[4]{0} get-tuple-element(%recv-done), index=0
}
"""


def spans(listing: Listing) -> list[tuple[str, str, str]]:
    """The names of the lines that each collective begins and ends at, and its op."""
    lines = listing.lines
    return [(lines[each.start].name, lines[each.stop].name, each.collective.op) for each in listing.spans]


def names(listing: Listing) -> list[str]:
    return [line.name for line in listing.lines]


def test_a_tpus_fused_gather_is_one_span_around_the_matmul() -> None:
    listing = list_hlo(TPU, XY)
    assert spans(listing) == [("async-collective-start", "async-collective-done", "all-gather")]
    (record,) = [line.collective for line in listing.lines if line.collective]
    assert record.axes == ("X",)
    middle = next(line for line in listing.lines if line.name == "fusion.53")
    assert middle.holds == ("convolution",)
    assert middle.collective is None
    assert listing.lines[-1].ends == names(listing).index("async-collective-start")


def test_a_wrapped_collective_is_one_span_through_its_update() -> None:
    assert spans(list_hlo(GPU, XY)) == [("rs-start", "rs-done", "reduce-scatter")]


def test_a_send_and_a_recv_between_slices_are_one_span() -> None:
    listing = list_hlo(SLICES)
    assert spans(listing) == [("send", "recv-done", "all-reduce")]
    assert [line.name for line in listing.lines if line.collective] == ["send"]


def test_layouts_metadata_and_configurations_are_folded() -> None:
    line = next(line for line in list_hlo(TPU, XY).lines if line.name == "fusion.53")
    assert line.shape == "(bf16[512,1024], bf16[1,1024,1024])"
    assert line.operands == "get-tuple-element.6, param.1, param.2"
    assert line.attributes == ("kind=kOutput",)


@pytest.mark.parametrize(("count", "repeats"), [(1, [1]), (2, [1, 1]), (3, [3]), (9, [9])])
def test_more_than_two_elements_of_a_tuple_share_a_line(count: int, repeats: list[int]) -> None:
    elements = "".join(f"  %e{i} = f32[2] get-tuple-element(%t), index={i}\n" for i in range(count))
    others = "".join(f"  %o{i} = f32[2] get-tuple-element(%u), index={i}\n" for i in range(count))
    text = f"ENTRY e {{\n{elements}{others}  %r = f32[2] all-reduce(%e0), replica_groups={{}}\n}}\n"
    lines = list_hlo(f"HloModule m\n\n{text}").lines
    assert [line.repeats for line in lines] == [1, *repeats, *repeats, 1]
    assert [line.name for line in lines if line.repeats > 1] == ["e0", "o0"][: 2 * (count > 2)]


LOOPS = """HloModule m, num_partitions=8

%inner (a: f32[4]) -> f32[4] {
  %a = f32[4] parameter(0)
  ROOT %ar = f32[4] all-reduce(%a), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, to_apply=%add
}

%quiet (b: f32[4]) -> f32[4] {
  ROOT %b = f32[4] parameter(0)
}

%outer (c: f32[4]) -> f32[4] {
  %c = f32[4] parameter(0)
  ROOT %called = f32[4] call(%c), to_apply=%inner
}

%never (d: f32[4]) -> pred[] {
  %d = f32[4] parameter(0)
  ROOT %no = pred[] constant(false)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  %q = f32[4] conditional(%pred, %p, %p), true_computation=%quiet, false_computation=%inner
  %loop = f32[4] while(%q), condition=%never, body=%outer, backend_config={"known_trip_count":{"n":"3"}}
  ROOT %again = f32[4] call(%loop), to_apply=%inner
}
"""


def test_what_runs_collectives_is_listed_once_where_it_first_runs() -> None:
    listing = list_hlo(LOOPS, XY)
    assert [(line.depth, line.opcode, line.name) for line in listing.lines if line.is_head] == [
        (0, "ENTRY", "main"),
        (2, "branch", "inner"),
        (2, "body", "outer"),
    ]
    assert names(listing) == ["main", "p", "q", "inner", "a", "ar", "loop", "outer", "c", "called", "again"]
    assert [line.collective.count for line in listing.lines if line.collective] == [5]


def test_a_computation_without_an_entry_is_listed() -> None:
    text = LOOPS[LOOPS.index("%inner") : LOOPS.index("%quiet")]
    assert names(list_hlo(text)) == ["inner", "a", "ar"]
    bare = "  %ar = f32[4] all-reduce(%a), replica_groups={}, to_apply=%add\n"
    assert [line.opcode for line in list_hlo(bare).lines] == ["all-reduce"]


@pytest.mark.parametrize(
    "text",
    [
        TPU[:1500],
        TPU.replace("all-gather.27", "all-gather.29"),
        LOOPS.replace("%inner", "%main"),
        LOOPS.replace("body=%outer", "body=%main"),
        LOOPS.replace("to_apply=%inner", "to_apply=%outer"),
        SLICES.replace("send-done(%send)", "send-done(%nothing)"),
        TPU.replace("{", "{{{{", 40),
        "HloModule m\n\nENTRY %e {\n" + "  %f = f32[2] fusion(%x), calls=%e\n" * 1000,
        "HloModule m\n\n%c {\n" + ", calls=%c" * 20_000 + "\n  %r = f32[2] all-reduce(%x)\n}\n",
        "HloModule m\n\nENTRY e {\n  %a = f32[2] all-reduce(" + "[({" * 200_000,
        "HloModule m\n" + "\n" * 500_000,
        "HloModule m\n\nENTRY e {\n  %a = " + "(f32[2], " * 100_000,
        "".join(
            f"%c{i} (p: f32[2]) -> f32[2] {{\n  %x = f32[2] call(%p), to_apply=%c{i + 1}\n}}\n"
            for i in range(20_000)
        )
        + "%c5000 (p: f32[2]) -> f32[2] {\n  %r = f32[2] all-reduce(%p), replica_groups={}\n}\n",
    ],
    ids=range(13),
)
def test_any_text_is_listed_in_bounded_time(text: str) -> None:
    started = time.process_time()
    try:
        listing = list_hlo(text)
    except NotationError:
        return
    finally:
        assert time.process_time() - started < 20
    for span in listing.spans:
        assert 0 <= span.start < span.stop < len(listing.lines)
    for number, line in enumerate(listing.lines):
        assert line.ends is None or line.ends < number


def test_no_hlo_is_refused_as_the_reader_does() -> None:
    with pytest.raises(NotationError, match="not HLO"):
        list_hlo("module @jit_f {}")
    with pytest.raises(QuestionError, match="8 devices"):
        list_hlo(TPU, Mesh(("X",), (4,)))
