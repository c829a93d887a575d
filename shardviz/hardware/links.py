"""One link: its latency and bandwidth, read from text such as ``45GB/s``, or from a table of a file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from shardviz.errors import QuestionError, quote
from shardviz.hardware.quantities import BANDWIDTH, LATENCY, figure, rate_text, time_text
from shardviz.strict_table import StrictTable

ASSUMED = "v5e"
"""The chip whose links are assumed where none is named."""
MAX_LATENCY = 1e6
"""Seconds; with the bounds below, all times of a schedule stay far within a float."""
LINK_KEYS = ("bandwidth", "latency")
"""The keys of a link in a machine's file."""
MIN_BANDWIDTH, MAX_BANDWIDTH = 1.0, 1e18
"""Bytes per second; beyond the largest there is ``inf``."""


@dataclass(frozen=True)
class LinkSpec:
    """A message of b bytes takes `latency` + b / `bandwidth` seconds over one directed link.

    The default is a TPU v5e's link, one way. A latency of 0 and a bandwidth of ``inf`` are allowed.
    Raises `QuestionError` for numbers that no link has.
    """

    latency: float = 1e-6
    bandwidth: float = 4.5e10

    def __post_init__(self) -> None:
        if not 0 <= self.latency <= MAX_LATENCY:
            raise QuestionError(
                f"a latency of {self.latency:g} s is not possible",
                f"latencies are from 0 to {MAX_LATENCY:g} s",
            )
        if not (MIN_BANDWIDTH <= self.bandwidth <= MAX_BANDWIDTH or self.bandwidth == math.inf):
            raise QuestionError(
                f"a bandwidth of {self.bandwidth:g} B/s is not possible",
                f"bandwidths are from {MIN_BANDWIDTH:g} to {MAX_BANDWIDTH:g} B/s, or inf",
            )

    def seconds(self, count: float) -> float:
        """Seconds that a message of so many bytes takes over one link."""
        return self.latency + count / self.bandwidth


def parse_latency(text: str) -> float:
    """Read ``1us``, ``0.5 ms``, ``0``. Raises `NotationError`, and `QuestionError` out of bounds."""
    seconds = LATENCY.parse(text)
    with _as_written("latency", text):
        return LinkSpec(latency=seconds).latency


def parse_bandwidth(text: str) -> float:
    """Read ``45GB/s``, ``40 GiB/s``, ``inf``.

    Raises `NotationError`, and `QuestionError` out of bounds.
    """
    rate = BANDWIDTH.parse(text)
    with _as_written("bandwidth", text):
        return LinkSpec(bandwidth=rate).bandwidth


@contextmanager
def _as_written(what: str, text: str) -> Iterator[None]:
    """Word the error of a quantity that no link has with the text of the quantity."""
    try:
        yield
    except QuestionError as error:
        raise QuestionError(f"a {what} of {quote(text.strip(), 30)} is not possible", error.hint) from None


def read_link(table: StrictTable, before: LinkSpec | None, hop: float) -> LinkSpec:
    """The link of a table; its bandwidth has to be there where none was `before`, its latency is `hop` then.

    Raises what the table makes.
    """
    usual_latency, usual_bandwidth = (hop, None) if before is None else (before.latency, before.bandwidth)
    latency = figure(table, "latency", LATENCY, usual_latency)
    return LinkSpec(latency, figure(table, "bandwidth", BANDWIDTH, usual_bandwidth))


def link_toml(link: LinkSpec) -> list[str]:
    """The lines of a table that `read_link` reads."""
    return [f"bandwidth = {rate_text(link.bandwidth)}", f"latency = {time_text(link.latency)}"]
