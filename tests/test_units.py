"""Numbers with units."""

from __future__ import annotations

import math

import pytest

from shardviz.errors import plural
from shardviz.units import (
    bytes_of,
    exact_bytes,
    human_bytes,
    measured_rate,
    rate,
    seconds,
    times,
    whole_bytes,
)

SIZES = [
    (0, "0 B", "0 bytes"),
    (1, "1 B", "1 byte"),
    (1023, "1023 B", "1,023 bytes"),
    (1024, "1 KiB", "1,024 bytes"),
    (1536, "1.5 KiB", "1,536 bytes"),
    (65_536, "64 KiB", "65,536 bytes"),
    (98_304, "96 KiB", "98,304 bytes"),
    (1024**2 - 1, "1 MiB", "1,048,575 bytes"),
    (8 * 1024**2, "8 MiB", "8,388,608 bytes"),
    (34.5 * 1024**2, "34.5 MiB", None),
    (1000 * 1024**2, "1,000 MiB", None),
    (2**62, "4 EiB", None),
    (2**74, "16,384 EiB", None),
]


@pytest.mark.parametrize(("count", "human", "exact"), SIZES)
def test_bytes(count: int, human: str, exact: str | None) -> None:
    assert human_bytes(int(count)) == human
    if exact is not None:
        assert exact_bytes(count) == exact


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (8 * 1024**2, "8 MiB"),
        (35_258_368, "33.6 MiB (35,258,368 bytes)"),
        (1024**2 - 1, "1 MiB (1,048,575 bytes)"),
    ],
)
def test_bytes_of_which_none_is_left_out(count: int, text: str) -> None:
    assert whole_bytes(count) == text


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0.0031, "3.1 ms"),
        (0.03982, "39.8 ms"),
        (0.1416, "142 ms"),
        (0.9999, "1.0 s"),
        (3.0, "3.0 s"),
        (12.0, "12.0 s"),
        (120.0, "120 s"),
        (12.345, "12.3 s"),
        (1234.5, "1,234 s"),
        (2_996_425.43, "2,996,425 s"),
        (9.8334e-3, "9.83 ms"),
        (9.996e-3, "10 ms"),
        (3.2e-12, "0.0032 ns"),
        (math.inf, "inf s"),
        (0.00099, "990 µs"),
        (0.0009999, "1 ms"),
        (12.44e-6, "12.4 µs"),
        (0.9999e-6, "1 µs"),
        (2.5e-7, "250 ns"),
        (0.0, "0 s"),
    ],
)
def test_seconds(duration: float, text: str) -> None:
    assert seconds(duration) == text


def test_bytes_that_do_not_fit_differ_from_the_limit() -> None:
    limit = 16_911_433_728  # a v5e: 15.75 GiB
    assert bytes_of(17 * 2**30, limit) == "17 GiB of 15.8 GiB"
    assert bytes_of(limit + 2**25, limit) == "15.78 GiB of 15.75 GiB"
    assert bytes_of(limit + 1, limit) == "15.750000001 GiB of 15.75 GiB"
    assert bytes_of(limit, limit) == "15.8 GiB of 15.8 GiB"


@pytest.mark.parametrize(
    ("bandwidth", "text"),
    [
        (1.0, "1 B/s"),
        (1500.0, "1.5 kB/s"),
        (2e6, "2 MB/s"),
        (4.5e10, "45 GB/s"),
        (3.35e12, "3.35 TB/s"),
        (1e18, "1 EB/s"),
        (float("inf"), "unlimited bytes/s"),
    ],
)
def test_rates(bandwidth: float, text: str) -> None:
    assert rate(bandwidth) == text


def test_what_is_measured_has_three_digits() -> None:
    assert [measured_rate(each) for each in (4.4723e10, 99.96e6, 1234.0)] == [
        "44.7 GB/s",
        "100 MB/s",
        "1.23 kB/s",
    ]


def test_shapes_and_counts() -> None:
    assert times((8, 2048)) == "8×2048"
    assert times(()) == "scalar"
    assert (plural(1, "copy", "copies"), plural(2, "copy", "copies")) == ("1 copy", "2 copies")
    assert plural(131_072, "device") == "131,072 devices"
