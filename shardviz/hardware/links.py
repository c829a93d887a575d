"""The links that join a group: latency and bandwidth, read from text such as ``45GB/s``, and topology."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from shardviz.errors import QuestionError, quote
from shardviz.hardware.chips import TPUS, Gpu, TpuChip
from shardviz.hardware.quantities import BANDWIDTH, LATENCY
from shardviz.hardware.topology import Topology, topology_for

ASSUMED = "v5e"
"""The chip whose links are assumed where none is named."""
MAX_LATENCY = 1e6
"""Seconds; with the bounds below, all times of a schedule stay far within a float."""
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


@dataclass(frozen=True)
class Links:
    """The links that join the members of a group.

    `chip` names the chip whose figures `spec` has, "" where they were given; `assumed` says that nobody has
    asked for that chip.
    """

    topology: Topology
    spec: LinkSpec
    chip: str = ""
    assumed: bool = False

    @property
    def each(self) -> str:
        """``a v5p link``, ``an h100 link``; ``a link`` of given figures."""
        return f"{'an' if self.chip[:1] in ('a', 'h') else 'a'} {self.chip} link" if self.chip else "a link"


def links_of_chip(topology: Topology, chip: TpuChip | Gpu | None) -> Links:
    """Links with a chip's figures; None assumes one."""
    known = TPUS[ASSUMED] if chip is None else chip
    return Links(topology, LinkSpec(bandwidth=known.link), known.name, chip is None)


def links_from_text(
    dims: tuple[int, ...],
    topology: str | None,
    latency: str | None,
    bandwidth: str | None,
    chip: TpuChip | Gpu | None = None,
) -> Links:
    """The links of a group whose axes have the sizes `dims`; None is as `chip` has it, or an assumed one.

    Raises `QuestionError`.
    """
    usual = links_of_chip(topology_for(topology, dims), chip)
    if latency is None and bandwidth is None:
        return usual
    spec = LinkSpec(
        usual.spec.latency if latency is None else parse_latency(latency),
        usual.spec.bandwidth if bandwidth is None else parse_bandwidth(bandwidth),
    )
    return Links(usual.topology, spec)
