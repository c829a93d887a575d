"""Collectives of layers that repeat, as one."""

from __future__ import annotations

from shardviz.reports.entries import alike
from tests.reports.entries import entry


def test_layers_are_one_line():
    layers = [entry(argument=f"params[{n}]['w2']", scopes=(f"layer_{n}",), runs=2) for n in range(3)]
    (group,) = alike(layers)
    assert (group.name, group.runs, group.wire_bytes, group.bytes) == ("params[*]['w2']", 6, 600, 1200)
    assert group.entries == tuple(layers)


def test_scopes_name_what_has_no_argument():
    (group,) = alike([entry(scopes=("model", f"block{n}", "mlp")) for n in (4, 5)])
    assert group.name == "model/block*/mlp"
    (single,) = alike([entry(scopes=("block7",))])
    assert single.name == "block7"


def test_what_differs_in_more_stays_apart():
    different = [
        entry(argument="w1"),
        entry(argument="v1"),
        entry(argument="w1", phase="backward"),
        entry(argument="w1", axes=("model",)),
        entry(argument="w1", sent=3),
        entry(argument="w1", source="step.py:13"),
        entry(argument="w1", runs=None),
        entry("all-reduce", argument="w1"),
    ]
    assert [group.entries for group in alike(different)] == [(each,) for each in different]


def test_sums_are_unknown_where_one_is():
    known, unknown = alike([entry(seconds=1.0, exposed=0.5, runs=2), entry(runs=None, seconds=1.0)])
    assert (known.seconds, known.exposed) == (2.0, 1.0)
    assert (unknown.runs, unknown.seconds, unknown.exposed, unknown.wire_bytes) == (None, None, None, None)
