"""The tables ``[[measured]]`` of a machine's file: collectives over axes of a mesh, in straight lines.

[[measured]]
op = "psum"
mesh = "X=2,Y=4"
axes = "Y"                   # one or more, with commas between them
dtype = "bf16"
noise = 0.04
regimes = [
    {from = "4KiB", latency = "77us", bandwidth = "3.1GB/s"},
    {from = "3MiB", latency = "0us", bandwidth = "1GB/s", bandwidth_error = "0.05GB/s"},
]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from shardviz.errors import QuestionError, quote
from shardviz.hardware.levels import LinkLevel
from shardviz.hardware.machine import Machine
from shardviz.hardware.measured import COLLECTIVES, MeasuredTimes, Regime, links_alike
from shardviz.hardware.mesh_placement import place_mesh
from shardviz.hardware.quantities import (
    LATENCY,
    MEASURED,
    PAYLOAD,
    SPREAD,
    figure,
    rate_text,
    time_text,
)
from shardviz.notation import parse_mesh
from shardviz.sharding import Mesh, canonical_dtype
from shardviz.strict_table import StrictTable, closest

MAX_REGIMES = 16
MAX_NOISE = 100.0
_KEYS = ("op", "mesh", "axes", "dtype", "noise", "regimes")
_REGIME = ("from", "latency", "latency_error", "bandwidth", "bandwidth_error")


def measured_tables(tables: Sequence[StrictTable], machine: Machine) -> tuple[MeasuredTimes, ...]:
    """The times of a machine's tables. Raises what the tables make."""
    known: dict[tuple[str, str, tuple[str, ...]], MeasuredTimes] = {}
    for table in tables:
        times = _times(table, machine)
        if (times.op, times.mesh, times.axes) in known:
            over = f"{times.op} over {' and '.join(times.axes)} of {times.mesh}"
            table.fail("op", f"{over} stands above already", "leave one of them out")
        known[times.op, times.mesh, times.axes] = times
    return tuple(known.values())


def links_of_groups(machine: Machine, op: str, mesh: Mesh, axes: tuple[str, ...]) -> tuple[LinkLevel, ...]:
    """The links of the groups over which an operation, by JAX's name, runs along these axes.

    Raises `QuestionError` for a mesh that does not fit on the machine.
    """
    return links_alike(place_mesh(machine, mesh).levels_for(op, axes))


def _times(table: StrictTable, machine: Machine) -> MeasuredTimes:
    table.only(_KEYS)
    op = table.choice("op", tuple(COLLECTIVES))
    text = table.line("mesh", 200)
    try:
        mesh = parse_mesh(text)
        place_mesh(machine, mesh)
    except QuestionError as error:
        table.fail("mesh", error.message, error.hint)
    axes = _axes(table, mesh)
    links = links_of_groups(machine, op, mesh, axes)
    if not links:
        table.fail("axes", "its groups have one device, which sends nothing", "leave this table out")
    dtype = ""
    if "dtype" in table:
        try:
            dtype = canonical_dtype(table.line("dtype", 20))
        except QuestionError as error:
            table.fail("dtype", error.message, error.hint)
    return MeasuredTimes(op, str(mesh), axes, tuple(_regimes(table)), links, dtype, _noise(table))


def _axes(table: StrictTable, mesh: Mesh) -> tuple[str, ...]:
    axes = tuple(name.strip() for name in table.line("axes", 200).split(","))
    for name in axes:
        if name not in mesh.axis_names:
            table.fail("axes", f"{mesh} has no axis {quote(name, 30)}", closest(name, mesh.axis_names))
    if len(set(axes)) < len(axes):
        table.fail("axes", "an axis is named twice", "name each once")
    return axes


def _noise(table: StrictTable) -> float | None:
    if "noise" not in table:
        return None
    value = table.values["noise"]
    if type(value) not in (int, float) or not 0 <= value <= MAX_NOISE:
        table.fail("noise", f"{quote(str(value), 30)} is not a number from 0 to {MAX_NOISE:g}", "0.2 is 20 %")
    return float(value)


def _regimes(table: StrictTable) -> Iterator[Regime]:
    rows = table.tables("regimes")
    if not 1 <= len(rows) <= MAX_REGIMES:
        table.fail("regimes", f"there are {len(rows):,}", f"write 1 to {MAX_REGIMES}")
    before = -1
    for row in rows:
        row.only(_REGIME)
        start = int(figure(row, "from", PAYLOAD, 0.0))
        if start <= before:
            row.fail("from", "it is not above that of the regime before", "begin with small sizes")
        before = start
        latency, bandwidth = figure(row, "latency", LATENCY), figure(row, "bandwidth", MEASURED)
        latency_error = figure(row, "latency_error", LATENCY, 0.0)
        bandwidth_error = figure(row, "bandwidth_error", SPREAD, 0.0)
        if bandwidth == float("inf") and not latency:
            row.fail("bandwidth", "with no latency it takes no time at all", "give one of the two")
        yield Regime(start, latency, bandwidth, latency_error, bandwidth_error)


def measured_toml(times: MeasuredTimes) -> Iterator[str]:
    """The lines of such a table, which read back to the same."""
    yield f"op = {_quoted(times.op)}"
    yield f"mesh = {_quoted(times.mesh)}"
    yield f"axes = {_quoted(','.join(times.axes))}"
    if times.dtype:
        yield f"dtype = {_quoted(times.dtype)}"
    if times.noise is not None:
        yield f"noise = {times.noise:.3g}"
    yield "regimes = ["
    yield from (f"    {{{', '.join(_regime_toml(regime))}}}," for regime in times.regimes)
    yield "]"


def _regime_toml(regime: Regime) -> Iterator[str]:
    yield f"from = {regime.start}"
    yield f"latency = {time_text(regime.latency)}"
    if regime.latency_error:
        yield f"latency_error = {time_text(regime.latency_error)}"
    yield f"bandwidth = {rate_text(regime.bandwidth)}"
    if regime.bandwidth_error:
        yield f"bandwidth_error = {rate_text(regime.bandwidth_error)}"


def _quoted(text: str) -> str:
    # TOML's basic strings have the escapes of JSON.
    return json.dumps(text, ensure_ascii=False)
