"""One link: its latency and bandwidth, read from text such as ``45GB/s``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from shardviz.errors import NotationError, QuestionError, quote

ASSUMED = "v5e"
"""The chip whose links are assumed where none is named."""
MAX_LATENCY = 1e6
"""Seconds; with the bounds below, all times of a schedule stay far within a float."""
MIN_BANDWIDTH, MAX_BANDWIDTH = 1.0, 1e18
"""Bytes per second; beyond the largest there is ``inf``."""

LATENCY_HINT = "write a number with s, ms, us or ns, as in 1us; 0 needs none"
BANDWIDTH_HINT = (
    "write a number with B/s, kB/s, MB/s, GB/s, TB/s or KiB/s, MiB/s, GiB/s, as in 45GB/s, or inf"
)

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_BYTES = {
    "B": 1.0,
    **{f"{letter}B": 1000.0**power for power, letter in enumerate("kMGTP", 1)},
    "KB": 1e3,
    **{f"{letter}iB": 1024.0**power for power, letter in enumerate("KMGTP", 1)},
    "kiB": 1024.0,
}
_BYTES_PER_SECOND = {f"{unit}{per}": factor for unit, factor in _BYTES.items() for per in ("/s", "ps")}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf\b|nan\b)")
_MAX_LENGTH = 60


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
    seconds = _quantity(text, _SECONDS, "latency", LATENCY_HINT)
    with _as_written("latency", text):
        return LinkSpec(latency=seconds).latency


def parse_bandwidth(text: str) -> float:
    """Read ``45GB/s``, ``40 GiB/s``, ``inf``.

    Raises `NotationError`, and `QuestionError` out of bounds.
    """
    rate = _quantity(text, _BYTES_PER_SECOND, "bandwidth", BANDWIDTH_HINT)
    with _as_written("bandwidth", text):
        return LinkSpec(bandwidth=rate).bandwidth


@contextmanager
def _as_written(what: str, text: str) -> Iterator[None]:
    """Word the error of a quantity that no link has with the text of the quantity."""
    try:
        yield
    except QuestionError as error:
        raise QuestionError(f"a {what} of {quote(text.strip(), 30)} is not possible", error.hint) from None


def _quantity(text: str, units: Mapping[str, float], what: str, hint: str) -> float:
    start = len(text) - len(text.lstrip())
    body = text.strip()
    number = _NUMBER.match(body)
    if number is None or len(body) > _MAX_LENGTH:
        problem = f"{quote(body, 30)} is not a {what}" if body else f"there is no {what}"
        raise NotationError(problem, text, start, max(len(text.rstrip()), start + 1), hint)
    unit = body[number.end() :].strip()
    if unit and unit not in units:
        begin = start + len(body) - len(unit)
        raise NotationError(
            f"{quote(unit, 20)} is not a unit of {what}", text, begin, start + len(body), hint
        )
    value = float(number.group())
    if not unit and value and math.isfinite(value):
        raise NotationError(f"{quote(body, 30)} has no unit of {what}", text, start, start + len(body), hint)
    return value * (units[unit] if unit else 1.0)
