"""The page of a whole model: its table, its bars, its step, in 80 columns and fewer."""

from __future__ import annotations

from functools import partial

import pytest

import shardviz
from shardviz.render.caption import split_text
from shardviz.render.lines import plain_text
from shardviz.render.palette import TRUECOLOR
from shardviz.sharding import Mesh, PartitionSpec


@pytest.fixture(scope="module")
def report():
    return shardviz.model("llama-2-7b", rules="fsdp+tensor", mesh="data=4,tensor=2", machine="v5e:2x4")


def test_the_table_has_a_row_for_each_parameter_of_a_layer(report):
    lines = plain_text(report.lines, 80).split("\n")
    assert lines[0] == "llama-2-7b  6,738,415,616 parameters in bf16, 13.48 GB"
    assert "mesh data=4, tensor=2, 8 devices   rules fsdp+tensor" in lines
    start = lines.index("model.layers.0–31 × 32                                           1.51 GiB")
    assert lines[start + 1 : start + 4] == [
        "  input_layernorm           4096        _            4096           8 KiB  8",
        "  self_attn.q_proj          4096×4096   tensor data  2048×1024      4 MiB  1",
        "  self_attn.k_proj          4096×4096   tensor data  2048×1024      4 MiB  1",
    ]


def test_a_page_says_what_fits(report):
    text = plain_text(partial(report.lines, verbose=True), 100)
    assert "memory  bytes per device, of 15.8 GiB per v5e" in text
    assert "a train step holds 14.8 GiB: fits only if the compiler allocates at most 7 % more" in text
    assert "1 psum" not in text.partition("layer × 32")[2].partition("recomputed")[0]
    assert "2 psum over tensor" in text
    assert "forward " in text.partition("logits and loss")[2].splitlines()[-2]


def test_the_answer_is_first_and_a_row_has_the_collectives_of_an_axis(report):
    lines = plain_text(report.lines, 80).splitlines()
    assert lines[4].startswith("a train step of ")
    assert " scaled to published v5e runs" in lines[4]
    assert "with perfect overlap" in lines[5]
    assert "without overlap" in lines[5]
    assert "fits" in "".join(lines[7:9])
    assert len(lines) <= 40
    layer = lines.index(next(line for line in lines if line.startswith("layer × 32")))
    assert "all_gather, psum_scatter over data" in lines[layer]
    assert "psum over tensor" in lines[layer + 1]


def test_where_there_is_no_room_for_the_operations_their_number_stands():
    report = shardviz.model("mixtral-8x7b", rules="fsdp+expert", mesh="data=4,expert=8", machine="v5p:2x4x4")
    narrow, wide = (plain_text(report.lines, width).splitlines() for width in (60, 140))
    assert next(line for line in narrow if line.startswith("layer × 32 ")).split()[3:6] == [
        "15",
        "over",
        "data,expert",
    ]
    assert "all_gather, psum_scatter over data" in "\n".join(wide)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_lines_fit_the_page(report, width):
    assert max(line.cell_len for line in report.lines(width, TRUECOLOR)) <= width


def test_what_rules_leave_out_is_said():
    rules = [("q_proj", "X_"), ("q_prj", "X_"), ("wte", "X_")]
    text = plain_text(shardviz.model("gpt2", rules=rules, mesh="X=4", backward=False).lines, 200)
    assert "rules without a match: 'q_proj', 'q_prj'" in text
    assert "no rule matches: wpe.weight, h.0–11.ln_1.weight" in text
    assert "not divisible: wte.weight: 50,257 over X=4 is padded to 50,260" in text


def test_padding_is_that_of_all_parts():
    rules = [("wte", "X_"), ("c_fc.weight", "_X"), ("mlp.c_proj.weight", "X_")]
    report = shardviz.model("gpt2", rules=rules, mesh="X=7", backward=False, sequence=64)
    assert "\n  padded: v=50,257 to 50,260, f=3,072 to 3,073, divisible by" in plain_text(report.lines, 80)


def test_a_split_has_its_axes_in_their_colours():
    mesh = Mesh(("data", "tensor"), (2, 4))
    text = split_text(PartitionSpec((("data", "tensor"), (), ("tensor",)[:0])), mesh, TRUECOLOR)
    assert text.plain == "(data tensor) _ _"
    assert {text.plain[span.start : span.end] for span in text.spans} == {"data", "tensor"}


def test_parts_of_an_axis_are_that_axis():
    """Eight heads of keys over sixteen devices: what moves goes over a part of the axis."""
    found = shardviz.model(
        "llama-3-8b", rules="tensor", mesh="tensor=16", machine="h100:2x8", batch=2, sequence=2048
    )
    assert "over tensor" in repr(found)
