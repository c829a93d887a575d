"""The figures of links: a chip's, and those that are read from text."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from shardviz.errors import NotationError, QuestionError, ShardvizError
from shardviz.hardware.chips import GPUS, TPUS
from shardviz.hardware.links import LinkSpec, link_as_given


def parse_latency(text):
    return link_as_given(LinkSpec(), latency=text).latency


def parse_bandwidth(text):
    return link_as_given(LinkSpec(), bandwidth=text).bandwidth


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
    "b300": 9e11,
    "gb200": 9e11,
    "gb300": 9e11,
    "mi300x": 4.8e10,
    "mi355x": 5.76e10,
    "trn1": None,
    "trn2": None,
}
"""Bytes per second of a link one way: "How to Scale Your Model"; v2: Google's page on it; B300, GB300:
data sheets; MI300X: AMD's blog on RCCL's bandwidth, 3/4 of 64 GB/s; MI355X: as much of 76.8."""


def test_every_chip_has_the_published_figure():
    assert {name: chip.link for name, chip in {**TPUS, **GPUS}.items()} == ONE_WAY


LATENCIES = [
    ("1us", 1e-6),
    ("1 us", 1e-6),
    ("1µs", 1e-6),
    ("1μs", 1e-6),
    ("250ns", 250e-9),
    ("0.5ms", 0.5e-3),
    (".5ms", 0.5e-3),
    ("2s", 2.0),
    ("0", 0.0),
    ("1e-6s", 1e-6),
    ("  3us ", 3e-6),
]
BANDWIDTHS = [
    ("45GB/s", 45e9),
    ("45 GB/s", 45e9),
    ("45GBps", 45e9),
    ("4.5e10B/s", 4.5e10),
    ("1kB/s", 1e3),
    ("1KB/s", 1e3),
    ("100MB/s", 1e8),
    ("1.8TB/s", 1.8e12),
    ("1KiB/s", 1024.0),
    ("2MiB/s", 2 * 2.0**20),
    ("40GiB/s", 40 * 2.0**30),
    ("1TiB/s", 2.0**40),
    ("7B/s", 7.0),
    ("inf", math.inf),
    ("inf GB/s", math.inf),
]


@pytest.mark.parametrize(("text", "seconds"), LATENCIES)
def test_latencies(text: str, seconds: float) -> None:
    assert parse_latency(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(("text", "rate"), BANDWIDTHS)
def test_bandwidths(text: str, rate: float) -> None:
    assert parse_bandwidth(text) == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (parse_latency, "", "there is no latency in an empty text"),
        (parse_latency, "fast", "'fast' is not a latency at character 1 of 'fast'"),
        (parse_latency, "1 parsec", "'parsec' is not a unit of latency at character 3 of '1 parsec'"),
        (parse_latency, "1GB/s", "'GB/s' is not a unit of latency at character 2 of '1GB/s'"),
        (parse_latency, "1,5us", "',5us' is not a unit of latency at character 2 of '1,5us'"),
        (parse_latency, "١us", "'١us' is not a latency at character 1 of '١us'"),
        (parse_latency, "-1us", "a latency of '-1us' is not possible"),
        (parse_latency, "1", "'1' has no unit of latency at character 1 of '1'"),
        (parse_latency, " 1e-6", "'1e-6' has no unit of latency at character 2 of ' 1e-6'"),
        (parse_bandwidth, "45", "'45' has no unit of bandwidth at character 1 of '45'"),
        (parse_latency, "nan", "a latency of 'nan' is not possible"),
        (parse_latency, "inf", "a latency of 'inf' is not possible"),
        (parse_latency, "1e7s", "a latency of '1e7s' is not possible"),
        (parse_bandwidth, "1e19B/s", "a bandwidth of '1e19B/s' is not possible"),
        (parse_latency, "1e400", "a latency of '1e400' is not possible"),
        (parse_bandwidth, "0", "a bandwidth of '0' is not possible"),
        (parse_bandwidth, "-1GB/s", "a bandwidth of '-1GB/s' is not possible"),
        (parse_bandwidth, "-inf", "a bandwidth of '-inf' is not possible"),
        (parse_bandwidth, "nan", "a bandwidth of 'nan' is not possible"),
        (parse_bandwidth, "45Gb/s", "'Gb/s' is not a unit of bandwidth at character 3 of '45Gb/s'"),
        (parse_bandwidth, "45GB", "'GB' is not a unit of bandwidth at character 3 of '45GB'"),
        (parse_bandwidth, " ", "there is no bandwidth at the end of ' '"),
        (parse_bandwidth, "1" * 400, "is not a bandwidth at character 1 of"),
    ],
)
def test_bad_text(read, text: str, message: str) -> None:
    with pytest.raises(QuestionError) as caught:
        read(text)
    assert message in caught.value.message
    assert caught.value.hint


@given(st.text(max_size=30), st.sampled_from([parse_latency, parse_bandwidth]))
def test_any_text_is_read_or_refused(text: str, read) -> None:
    with suppress(ShardvizError):
        assert read(text) >= 0


def test_junk_is_a_notation_error_and_shows_its_place() -> None:
    with pytest.raises(NotationError) as caught:
        parse_bandwidth("45 parrots")
    assert caught.value.text[caught.value.start : caught.value.stop] == "parrots"


def test_the_time_of_one_message() -> None:
    assert LinkSpec(1e-6, 1e9).seconds(1000) == pytest.approx(2e-6)
    assert LinkSpec(0.0, math.inf).seconds(1000) == 0
