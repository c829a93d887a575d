"""Sends and receives between TPU slices, in texts that are whole, cut or nonsense."""

from __future__ import annotations

import pytest

from shardviz.errors import NotationError
from shardviz.hlo import read_hlo
from shardviz.hlo.text.cross_slice import CrossSliceTransfer, device_numbers, slices_named
from shardviz.hlo.text.instruction import parse_instruction
from shardviz.sharding import Mesh

PRODUCT = '"{1,2}x{0:3}"'
LISTED = "{{100000,200001},{100001,200000},{100002,200002},{100003,200003}}"


def line(op: str, shape: str, kind: str = "ALL_REDUCE", target: str = PRODUCT, meeting: str = "r_0") -> str:
    return (
        f"  %{op} = ({shape}, u32[], token[]) {op}(%x, %token), channel_id=2, is_host_transfer=true, "
        f'frontend_attributes={{_xla_host_transfer_rendezvous="{meeting}",_xla_megascale_target={target},'
        f'_xla_megascale_transfer_type="{kind}"}}\n'
    )


def module(*lines: str, mesh: Mesh | None = None):
    head = "HloModule m, is_scheduled=true, num_partitions=4\n\nENTRY %main (x: f32[8]) -> f32[8] {\n"
    return read_hlo(head + "".join(lines) + "}\n", mesh)


ADD = "  %sum = f32[8,8] add(%q, %q)\n"
ENDS = "  %send-done = token[] send-done(%send)\n  %recv-done = (f32[8], token[]) recv-done(%recv)\n"


def test_a_pair_is_one_collective():
    found = module(line("send", "f32[8]"), line("recv", "f32[8]"), ADD, ENDS, ADD)
    (pair,) = found.collectives
    assert (pair.op, pair.name, pair.between_slices) == ("all-reduce", "send", True)
    assert pair.groups == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert (pair.bytes, pair.wire_bytes, pair.group_size) == (32, 32, 2)
    assert [work.name for work in pair.overlapped] == ["sum"]
    assert (found.num_slices, found.num_partitions, found.unread) == (2, 4, ())


def test_it_is_under_way_from_the_send():
    found = module(line("send", "f32[8]"), ADD, line("recv", "f32[8]"), ENDS)
    assert [work.name for work in found.collectives[0].overlapped] == ["sum"]
    found = module(line("recv", "f32[8]"), ADD, line("send", "f32[8]"), ENDS)
    assert found.collectives[0].overlapped == ()


def test_devices_that_are_listed_are_ids_of_the_mesh():
    mesh = Mesh(("S", "Y"), (2, 4), (0, 1, 2, 3, 5, 4, 6, 7))
    lines = [line(op, "f32[8]", target=LISTED) for op in ("recv", "send")]
    (pair,) = module(*lines, mesh=mesh).collectives
    assert (pair.groups, pair.axes) == (((0, 5), (1, 4), (2, 6), (3, 7)), ("S",))


def test_a_scatter_and_a_gather_tell_their_dimension():
    lines = [line("send", "bf16[512,2]", "REDUCE_SCATTER"), line("recv", "bf16[256,2]", "REDUCE_SCATTER")]
    (pair,) = module(*lines).collectives
    assert (pair.op, pair.dim, pair.operand_shape, pair.result_shape) == (
        "reduce-scatter",
        0,
        (512, 2),
        (256, 2),
    )
    assert (pair.bytes, pair.wire_bytes) == (2048, 1024)


@pytest.mark.parametrize(
    "lines",
    [
        [line("send", "f32[8]"), line("recv", "f32[8]", meeting="another")],
        [line("send", "f32[8]", "SOMETHING_NEW"), line("recv", "f32[8]", "SOMETHING_NEW")],
    ],
    ids=["strangers", "unknown"],
)
def test_what_is_no_pair_stays_send_and_recv(lines):
    found = module(*lines).collectives
    assert [(each.op, each.between_slices) for each in found] == [("send", False), ("recv", False)]


@pytest.mark.parametrize(
    "target",
    ['"{1,2}x{0:9}"', '"{0,1}x{0:3}"', '"{1,2}x{}"', '"nonsense"', "{{5,6}}", "{{100000,200009}}", "{}", '"'],
)
def test_impossible_targets_are_said_to_be_unread(target):
    found = module(line("send", "f32[8]", target=target), line("recv", "f32[8]", target=target))
    assert found.collectives == ()
    (complaint,) = found.unread
    assert complaint.startswith("line 4: 'send' cannot be read: the devices of these slices are not readable")


def test_device_numbers():
    assert device_numbers('"{1,3}x{0:1,4}"', 5) == ((0, 10), (1, 11), (4, 14))
    assert device_numbers("{{100003->200000},{200000->100003}}", 4) == ((3, 4), (4, 3))
    with pytest.raises(NotationError):
        device_numbers('"{1,2}x{0:999999999}"', 4)


@pytest.mark.parametrize(
    ("targets", "slices"),
    [
        ((), 1),
        ((PRODUCT,), 2),
        ((LISTED, "{{300000->400000}}"), 4),
        (("",), 1),
        (('"{1,999999999999}x{0:1}"',), 100_000),
    ],
)
def test_slices_named(targets, slices):
    line = parse_instruction("%s = (f32[8], u32[], token[]) send(%x, %t)")
    assert slices_named([CrossSliceTransfer("all-reduce", each, line, line) for each in targets]) == slices
