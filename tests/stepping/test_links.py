"""The figures of links: a chip's, given ones, or those of a chip that is assumed, and said to be."""

from __future__ import annotations

import pytest

from shardviz.compiler import parse_targets
from shardviz.hardware.chips import GPUS, TPUS
from shardviz.sharding import Mesh
from shardviz.stepping.links import linked_chip, links_from_text

EIGHT = Mesh(("X", "Y"), (2, 4))

ONE_WAY = {
    "v2": 6e10,
    "v3": 1e11,
    "v4": 4.5e10,
    "v5e": 4.5e10,
    "v5p": 9e10,
    "v6e": 9e10,
    "tpu7x": 9e10,
    "a100": 3e11,
    "h100": 4.5e11,
    "h200": 4.5e11,
    "b200": 9e11,
}
"""Bytes per second of a link one way: "How to Scale Your Model", and for v2 Google's page on it."""


def test_every_chip_has_the_published_figure():
    assert {name: chip.link for name, chip in {**TPUS, **GPUS}.items()} == ONE_WAY


@pytest.mark.parametrize(
    ("targets", "chip"),
    [
        ("v5p:2x2x2", "v5p"),
        ("shardy,cpu,v6e:2x4,v5e:2x4", "v6e"),
        ("h100:8", "h100"),
        ("v5p:2x2x1,v5e:2x4", "v5e"),  # The first has another size.
        ("2*v5e:2x2", None),  # What joins slices or nodes are no links of a chip.
        ("h100:2x4", None),
        ("shardy,cpu", None),
    ],
)
def test_the_first_target_of_the_meshs_size_has_the_links(targets, chip):
    found = linked_chip(parse_targets(targets), EIGHT)
    assert (found and found.name) == chip


@pytest.mark.parametrize(
    ("latency", "bandwidth", "figures", "each", "assumed"),
    [
        (None, None, (1e-6, 4.5e10), "a v5e link", True),
        (None, "90GB/s", (1e-6, 9e10), "a link", False),
        ("2us", None, (2e-6, 4.5e10), "a link", False),
    ],
)
def test_a_chip_is_assumed_only_where_nothing_is_given(latency, bandwidth, figures, each, assumed):
    links = links_from_text((8,), None, latency, bandwidth)
    assert (links.wire.latency, links.wire.bandwidth) == figures
    assert (links.each, links.assumed) == (each, assumed)
