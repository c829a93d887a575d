"""Figures in the sentences of lessons are those of the problem that they are about."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from shardviz.forms.form import CollectiveFields
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.machine_file import named_machine
from shardviz.lessons.course import find
from shardviz.lessons.measures import compute
from shardviz.lessons.measures.subject import resolve_once
from shardviz.planner.search import best_meshes, parse_axes, question_from_text

ROOFS = {"specs": ("__", "_X", "_X"), "sizes": "b=16,d=8192,f=32768"}
MANY_ROWS = {"sizes": "b=4096,d=8192,f=8192"}
RING = {"mesh": "X=4,Y=4,Z=4", "machine": "v4:4x4x4"}
HALVES = CollectiveFields(
    "all_gather", "X", "", "9000000", "X", "bf16", "bidirectional-ring", (("pieces", "2"),)
)
LAYERS = "e=4096,f=4096,g=4096,h=4096,i=4096"
FEW, FEWER = {"sizes": "b=98304,d=8192,f=32768"}, {"sizes": "b=32768,d=8192,f=32768"}
SPLIT_ROWS = {"specs": ("data tensor", "data tensor", "tensor data", "?", "data tensor")}
FSDP = {"specs": ("data _", "data _", "_ data", "?", "data _")}
WHOLE_TOKENS = {"specs": ("___", "_", "_ tensor", "tensor _", "?", "___")}
OVER_DCN = {"collective": CollectiveFields("psum", "slice", "", "134217728", "slice", "bf16", "ring")}
IN_A_SLICE = {"specs": ("chip _", "chip _", "__")}
ALL_EXPERTS = {"einsum": "edf->edf", "specs": ("X_Y", "__Y"), "sizes": "e=8,d=512,f=1024"}


def on(data, tensor):
    return {"mesh": f"data={data},tensor={tensor}"}


@pytest.mark.parametrize(
    ("lesson", "figure", "ask", "changes"),
    [
        ("rooflines", "164 µs", "seconds", ROOFS),
        ("rooflines", "128 MiB", "shard_bytes W", ROOFS),
        ("rooflines", "698 µs", "seconds einsum", MANY_ROWS),
        ("rooflines", "1.12 ms", "seconds psum", MANY_ROWS),
        ("rooflines", "117 µs", "seconds", {}),
        ("time-of-a-collective", "909 µs", "seconds", {}),
        ("time-of-a-collective", "152 µs", "seconds", RING | {"collective": HALVES}),
        ("overlap", "1.12 ms", "seconds all_gather", {}),
        ("overlap", "698 µs", "seconds einsum", {}),
        ("overlap", "2.79 ms", "seconds einsum", {"sizes": f"b=16384,{LAYERS}"}),
        ("overlap", "2.26 ms", "compiled four-layers sending", {"sizes": f"b=16384,{LAYERS}"}),
        ("fully-sharded-training", "24 GiB", "memory optimizer", {}),
        ("fully-sharded-training", "4 GiB", "memory parameters", {}),
        ("fully-sharded-training", "448 MiB", "sent", {}),
        ("fully-sharded-training", "9 GiB", "memory activations", FSDP),
        ("best-split", "357 ms", "step", on(64, 1) | FEW),
        ("best-split", "416 ms", "step", on(16, 4) | FEW),
        ("best-split", "517 ms", "step", on(4, 16) | FEW),
        ("best-split", "841 ms", "step", on(1, 64) | FEW),
        ("best-split", "53.7 ms", "seconds psum", on(16, 4) | FEW),
        ("best-split", "134 ms", "seconds psum", on(4, 16) | FEW),
        ("best-split", "376 ms", "seconds psum", on(1, 64) | FEW),
        ("best-split", "122 ms", "overlapped", on(16, 4) | SPLIT_ROWS | FEWER),
        ("best-split", "17.9 ms", "seconds psum", on(16, 4) | FEWER),
        ("best-split", "44.7 ms", "seconds psum", on(4, 16) | FEWER),
        ("best-split", "125 ms", "seconds psum", on(1, 64) | FEWER),
        ("best-split", "251 ms", "step", on(64, 1) | FEWER),
        ("best-split", "142 ms", "step", on(16, 4) | FEWER),
        ("best-split", "175 ms", "step", on(4, 16) | FEWER),
        ("best-split", "283 ms", "step", on(1, 64) | FEWER),
        ("sequence-parallel", "128 MiB", "bytes W1", 1),
        ("sequence-parallel", "64 MiB", "bytes N", 1),
        ("sequence-parallel", "112 MiB", "sent", (1, WHOLE_TOKENS)),
        ("sequence-parallel", "64 MiB", "shard_bytes K", 3),
        ("sequence-parallel", "11.2 ms", "overlapped", 3),
        ("sequence-parallel", "4.47 ms", "seconds all_gather", 3),
        ("sequence-parallel", "140 µs", "seconds all_gather", (3, {"sizes": "b=1,t=1024,n=32,h=128"})),
        ("experts-with-capacity", "256", "size c", {}),
        ("experts-with-capacity", "128 MiB", "bytes D", 2),
        ("experts-with-capacity", "16 MiB", "shard_bytes D", 2),
        ("experts-with-capacity", "44", "dropped c 300,0", {}),
        ("pipeline", "43 %", "bubble stage m", {}),
        ("pipeline", "15", "ticks stage m", 3),
        ("several-slices", "43 ms", "seconds", (2, OVER_DCN)),
        ("several-slices", "2.8 ms", "seconds psum", (2, IN_A_SLICE)),
        ("several-slices", "256 MiB", "memory parameters", {}),
        ("experts", "6 MiB", "sent", (2, ALL_EXPERTS)),
        ("your-own-program", "1 GiB", "bytes X", {}),
        ("your-own-program", "112 MiB", "sent", {}),
    ],
)
def test_it_is_so(lesson, figure, ask, changes):
    """`changes` are of the setup, of a question's problem, or the number of a question."""
    found = find(lesson)
    question, changed = changes if isinstance(changes, tuple) else (changes, {})
    draft = found.predictions[question - 1].draft if isinstance(question, int) else found.setup
    changed = changed if isinstance(question, int) else question
    asked = [each.question for each in found.predictions]
    wrong = [text for each in found.predictions for pair in each.wrong.items() for text in pair]
    said = " ".join([found.see, found.explain, *found.hints, *asked, *wrong])
    number, _, unit = figure.partition(" ")
    assert re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d)", said)
    assert unit in said
    answer = compute(ask, replace(draft, **changed))
    assert answer.is_same(figure), answer.text


def test_the_best_split_is_that_of_the_search_and_of_the_book():
    """ "How to Scale Your Model", part 5: FSDP alone from 850 tokens a chip on, below √(2·B·N/F) ways."""
    lesson = find("best-split")
    for prediction in lesson.predictions[1:]:
        draft = prediction.draft
        problem = resolve_once(draft).problem
        question = question_from_text(
            draft.einsum,
            named_machine(draft.machine),
            parse_axes("data=fsdp,tensor"),
            sizes=draft.sizes,
            training=problem.training,
        )
        best = best_meshes(question).found[0].mesh.shape
        answer = compute(prediction.ask, draft)
        assert answer.is_same(",".join(f"{axis}={best.get(axis, 1)}" for axis in ("data", "tensor")))
        rows = problem.arguments[0].shape[0]
        ways = 64 if rows / 64 > 850 else (2 * rows * 64 / 32768) ** 0.5
        assert abs(math.log2(best["data"] / ways)) < 1


def test_the_ring_on_a_line_by_the_rule_of_the_book_beside_store_and_forward():
    """Its rule for a message over several hops: the bytes over a link once, and each hop's latency."""
    lesson = find("time-of-a-collective")
    levels = resolve_once(lesson.setup).placed.levels_for("all_gather", ("X",))
    a_round = collective_time("send", 4_500_000, levels, distances=[3]).seconds
    assert f"{round(3 * a_round * 1e6)} µs" in lesson.explain
    assert "store and forward" in lesson.see
