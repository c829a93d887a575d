"""A machine of what was measured: its collectives as lines, and its links and units as these imply them.

What was not measured, a collective or a group with other links, falls back to the formulas, on links with
the bandwidth and the latency that make the formulas agree best with what was.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from shardviz.devices.fitting import TimeFit
from shardviz.devices.question import MeasureQuestion
from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.links import LinkLevel, LinkSpec
from shardviz.hardware.machine import Machine, place_mesh
from shardviz.hardware.measured import COLLECTIVES, MeasuredTimes, Regime, links_alike
from shardviz.hardware.switched_nodes import SwitchedNodes

LARGE = 2**40
"""Bytes that are bound by bandwidth alone."""
LAST = 3
"""The largest sizes of a copy, which no cache holds, tell the bandwidth of the memory."""
MAX_LATENCY = 1.0
MIN_BANDWIDTH = 1e6
MIN_PEAK = 1e9
MIN_RATE, MAX_SPREAD = 1e3, 1e16
"""Figures beyond these a machine's file does not take."""


def bare_machine(chip: str, devices: int, node: int) -> Machine:
    """A machine of which nothing is known but its devices, `node` of them in each host."""
    link = LinkSpec()
    family = SwitchedNodes.of(chip, node, devices // node, link, link if devices > node else None)
    return Machine(chip, DeviceFigures(()), family)


def measured_machine(
    base: Machine, question: MeasureQuestion, fits: Sequence[TimeFit], name: str, source: str
) -> Machine:
    """The machine `base` with what was measured in the place of its figures.

    Raises `QuestionError` where the mesh does not fit on the base.
    """
    base = replace(base, name=name, source=source, assumed=False, measured=())
    machine = _with_links(replace(base, device=_device(base.device, fits)), question, fits)
    levels_for = place_mesh(machine, question.mesh).levels_for
    measured = tuple(
        MeasuredTimes(
            fit.op,
            str(question.mesh),
            fit.axes,
            tuple(map(_within_bounds, fit.regimes)),
            links_alike(levels_for(fit.op, fit.axes)),
            question.dtype,
            fit.noise,
        )
        for fit in fits
        # Lines that tell no bandwidth would have larger sizes take no longer.
        if fit.op in COLLECTIVES and fit.regimes[-1].bandwidth < math.inf
    )
    return replace(machine, measured=measured)


def _device(device: DeviceFigures, fits: Sequence[TimeFit]) -> DeviceFigures:
    for fit in fits:
        if fit.op == "matmul":
            best = max(row.flops_per_second or 0.0 for row in fit.rows)
            peaks = dict(device.peak) | {fit.rows[0].case.dtype: best}
            device = replace(
                device, peak=tuple((dtype, peak) for dtype, peak in peaks.items() if peak >= MIN_PEAK)
            )
        elif fit.op == "copy":
            bandwidth = statistics.median(row.bus_bandwidth for row in fit.rows[-LAST:])
            device = replace(device, hbm_bandwidth=max(bandwidth, MIN_BANDWIDTH))
    return device


def links_not_measured(
    machine: Machine, question: MeasureQuestion, fits: Sequence[TimeFit]
) -> dict[str, LinkSpec]:
    """The links of which no fit tells a bandwidth, so that the machine keeps the figures that it had: those
    of a host's devices, "switch", and those between hosts, "network"."""
    family = machine.family
    bandwidths, _ = _implied(machine, question, fits)
    return {
        name: link
        for name, link in family.links.items()
        if name == "network" or (name == "switch" and family.reaches(name))
        if name not in bandwidths
    }


def _with_links(machine: Machine, question: MeasureQuestion, fits: Sequence[TimeFit]) -> Machine:
    """The machine with links on which the formulas take the time that was measured, in the median."""
    bandwidths, latencies = _implied(machine, question, fits)

    def fitted(key: str, link: LinkSpec) -> LinkSpec:
        bandwidth, latency = link.bandwidth, link.latency
        if key in bandwidths:
            bandwidth = max(statistics.median(bandwidths[key]), MIN_BANDWIDTH)
        if key in latencies:
            latency = min(statistics.median(latencies[key]), MAX_LATENCY)
        return LinkSpec(latency, bandwidth)

    links = {name: fitted(name, link) for name, link in machine.family.links.items()}
    return replace(machine, family=machine.family.with_links(links))


def _implied(
    machine: Machine, question: MeasureQuestion, fits: Sequence[TimeFit]
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """The bandwidths and the latencies of links with which the formulas take the time of each fit."""
    placed = place_mesh(machine, question.mesh)
    bandwidths: dict[str, list[float]] = {}
    latencies: dict[str, list[float]] = {}
    for fit in fits:
        if fit.op not in COLLECTIVES:
            continue
        levels = placed.levels_for(fit.op, fit.axes)
        if len(levels) != 1:
            continue
        (level,) = levels
        op, key = COLLECTIVES[fit.op], _link_of(level)
        formula = collective_time(op, LARGE, levels)
        if math.isfinite(fit.regimes[-1].bandwidth):
            per_byte = 1 / fit.regimes[-1].bandwidth
            ratio = formula.bandwidth_seconds / LARGE / per_byte
            bandwidths.setdefault(key, []).append(level.spec.bandwidth * ratio)
        if not level.nccl:
            # The hops of the formula: its latency on links of a second each.
            slow = replace(level, spec=replace(level.spec, latency=1.0))
            hops = collective_time(op, 1, (slow,)).latency_seconds
            latencies.setdefault(key, []).append(fit.regimes[0].latency / hops)
    return bandwidths, latencies


def _within_bounds(regime: Regime) -> Regime:
    return replace(
        regime,
        latency=min(regime.latency, MAX_LATENCY),
        latency_error=min(regime.latency_error, MAX_LATENCY),
        bandwidth=max(regime.bandwidth, MIN_RATE),
        bandwidth_error=min(regime.bandwidth_error, MAX_SPREAD),
    )


def _link_of(level: LinkLevel) -> str:
    """The links of a level: of one axis of the torus its name."""
    return level.name if level.is_torus else level.kind
