"""A machine as the text of a TOML file that `machine_file` reads back to an equal one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from shardviz.hardware.links import LinkSpec
from shardviz.hardware.machine import Machine
from shardviz.hardware.measured import MeasuredTimes, Regime

DIGITS = 6
"""Digits of a figure: more than anybody measures."""


def machine_toml(machine: Machine, comment: str = "") -> str:
    """The text, with all figures of the machine and no base; each line of `comment` stands above."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"{key} = {_text(getattr(machine, key))}" for key in ("name", "chip", "source")]
    lines += ["", "[device]", *_device(machine)]
    if machine.torus:
        lines += ["", "[torus]", *_torus(machine)]
    elif machine.node_link is not None:
        count = machine.devices // machine.node
        lines += ["", "[node]", f"devices = {machine.node}", f"count = {count}", *_link(machine.node_link)]
    for key, link in (("cores", machine.core_link), ("network", machine.network)):
        if link is not None:
            lines += ["", f"[{key}]", *_link(link)]
    for each in machine.measured:
        lines += ["", "[[measured]]", *_measured(each)]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    # TOML's basic strings have the escapes of JSON.
    return json.dumps(text, ensure_ascii=False)


def _device(machine: Machine) -> Iterator[str]:
    device = machine.device
    sizes = {"hbm": device.hbm_bytes, "usable_hbm": device.usable_bytes, "on_chip": device.on_chip_bytes}
    yield from (f"{key} = {size}" for key, size in sizes.items() if size is not None)
    if device.hbm_bandwidth is not None:
        yield f"hbm_bandwidth = {_rate(device.hbm_bandwidth)}"
    if device.clock is not None:
        yield f'clock = "{device.clock / 1e6:.{DIGITS}g}MHz"'
    for dtype, peak in device.peak:
        yield f'peak.{dtype} = "{peak / 1e9:.{DIGITS}g}GFLOP/s"'


def _torus(machine: Machine) -> Iterator[str]:
    yield f'shape = "{"x".join(map(str, machine.torus))}"'
    yield f"wrap = [{', '.join(str(each).lower() for each in machine.wrap)}]"
    yield f"slices = {machine.slices}"
    yield f"devices_per_chip = {machine.devices_per_chip}"
    yield f"bandwidth = [{', '.join(_rate(link.bandwidth) for link in machine.axis_links)}]"
    yield f"latency = [{', '.join(_time(link.latency) for link in machine.axis_links)}]"


def _link(link: LinkSpec) -> Iterator[str]:
    yield f"bandwidth = {_rate(link.bandwidth)}"
    yield f"latency = {_time(link.latency)}"


def _measured(each: MeasuredTimes) -> Iterator[str]:
    yield f"op = {_text(each.op)}"
    yield f"mesh = {_text(each.mesh)}"
    yield f"axes = {_text(','.join(each.axes))}"
    if each.dtype:
        yield f"dtype = {_text(each.dtype)}"
    if each.noise is not None:
        yield f"noise = {each.noise:.3g}"
    yield "regimes = ["
    yield from (f"    {{{', '.join(_regime(regime))}}}," for regime in each.regimes)
    yield "]"


def _regime(regime: Regime) -> Iterator[str]:
    yield f"from = {regime.start}"
    yield f"latency = {_time(regime.latency)}"
    if regime.latency_error:
        yield f"latency_error = {_time(regime.latency_error)}"
    yield f"bandwidth = {_rate(regime.bandwidth)}"
    if regime.bandwidth_error:
        yield f"bandwidth_error = {_rate(regime.bandwidth_error)}"


def _rate(bandwidth: float) -> str:
    return '"inf"' if bandwidth == math.inf else f'"{bandwidth / 1e9:.{DIGITS}g}GB/s"'


def _time(seconds: float) -> str:
    return f'"{seconds * 1e6:.{DIGITS}g}us"'
