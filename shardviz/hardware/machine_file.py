"""A machine by the name of its hardware, as after `--target`, or by a TOML file of figures.

    base = "v5p:4x4x8"           # all figures that are not given here; without it they all have to be
    [device]                     # one JAX device
    hbm_bandwidth = "2.6TB/s"
    peak.bf16 = "440TFLOP/s"
    [torus]                      # or [node], for GPUs
    bandwidth = "85GB/s"         # of a link, one way
    [[measured]]                 # of a collective, in place of the formulas
    op = "psum"
    mesh = "X=4,Y=32"
    axes = "X"
    regimes = [{from = "4KiB", latency = "12us", bandwidth = "80GB/s"}]

A text has a unit; a plain number is in bytes, bytes per second, seconds, FLOP/s or hertz.
"""

from __future__ import annotations

import math
import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from shardviz.errors import QuestionError, ShardvizError, place, plural, quote
from shardviz.hardware.chips import DCN_LATENCY, ICI_HOP, INFINIBAND_HOP, NVLINK_HOP, TPUS
from shardviz.hardware.clusters import MAX_DEVICES, Fault, parse_cluster
from shardviz.hardware.figures import figure
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.machine import DeviceFigures, Machine, machine_of
from shardviz.hardware.measured_tables import measured_tables
from shardviz.hardware.placement import AXES
from shardviz.hardware.quantities import BANDWIDTH, CLOCK, LATENCY, PEAK, SIZE
from shardviz.sharding import canonical_dtype
from shardviz.strict_table import StrictTable
from shardviz.user_files import open_file

MAX_BYTES = 64_000
"""Bytes of a machine's file."""
READ = "shardviz.machine_file"
"""The audit event of a machine's file that is about to be read: who may read none refuses it there."""
MAX_NAME = 60

_KEYS = ("base", "name", "source", "chip", "device", "torus", "cores", "node", "network", "measured")
_DEVICE = ("peak", "hbm", "usable_hbm", "hbm_bandwidth", "on_chip", "clock")
_LINK = ("bandwidth", "latency")
_TORUS = ("shape", "wrap", "slices", "devices_per_chip", *_LINK)
_NODE = ("devices", "count", *_LINK)


class MachineFileError(QuestionError):
    """An error of a machine's file `name`: at `key` (empty: the whole), on its line, with a `reason`."""

    def __init__(self, name: str, text: str, key: str, reason: str, hint: str = "") -> None:
        line = _line_of(text, key) if key else None
        where = quote(name, 200) if line is None else f"{quote(name, 200)}, line {line}"
        super().__init__(": ".join(filter(None, (where, key, reason))), hint)
        self.name, self.key, self.line, self.reason = name, key, line, reason


def named_machine(text: str) -> Machine:
    """The machine that ``v5p:4x4x8`` names, or a file such as ``my-cluster.toml``.

    Raises `QuestionError` for a name of no hardware, and for a file that cannot be read or is wrong.
    """
    name = text.strip()
    if _is_file(name):
        return read_machine(Path(name))
    start = len(text) - len(text.lstrip())
    try:
        cluster = parse_cluster(name.lower())
    except Fault as fault:
        where = place(text, start + fault.start, start + fault.stop)
        raise QuestionError(f"{fault.problem} {where}", fault.hint) from None
    if cluster is None:
        hint = "name one as in v5p:4x4x8 or h100:2x8, or a file such as my-cluster.toml"
        raise QuestionError(f"{quote(name)} is not a machine", hint)
    return machine_of(cluster)


def _is_file(name: str) -> bool:
    return name.lower().endswith(".toml") or os.sep in name


def read_machine(source: Path | str, name: str = "machine.toml") -> Machine:
    """The machine of a TOML file, or of its text, whose errors call it `name`.

    Raises `MachineFileError` for text that is not TOML, a key that is unknown, missing or of a wrong type,
    and a figure that no hardware has; `QuestionError` for a file that cannot be read.
    """
    if isinstance(source, Path):
        name, source = str(source), _content(source)
    fail: Callable[[str, str, str], ShardvizError] = partial(MachineFileError, name, source)
    try:
        table = StrictTable(tomllib.loads(source), fail)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "its lists are too deep"
        raise fail("", f"it is not TOML: {quote(reason, 80)[1:-1]}", "look at that line") from None
    table.only(_KEYS)
    return _machine(table, Path(name).stem)


def _content(path: Path) -> str:
    """The text of a file, announced as `READ`. Opened first, and without waiting: it may be a pipe, or one
    that is not for us."""
    shown = quote(str(path), 200)
    try:
        sys.audit(READ, str(path))
        with open_file(path.expanduser()) as file:
            read = file.read(MAX_BYTES + 1)
        if len(read) > MAX_BYTES:
            raise QuestionError(f"{shown} has more than {MAX_BYTES:,} bytes", "a machine's file is short")
        return read.decode("utf-8-sig")
    except FileNotFoundError:
        hint = "write one, or name hardware such as v5p:4x4x8"
        raise QuestionError(f"file {shown} does not exist", hint) from None
    except UnicodeDecodeError:
        raise QuestionError(f"{shown} is not text in UTF-8", "give a file in TOML") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise QuestionError(f"{shown} cannot be read: {reason}", "name hardware such as v5p:4x4x8") from None


def _machine(table: StrictTable, stem: str) -> Machine:
    name = _words(table, "name", MAX_NAME) if "name" in table else stem
    base = _base(table)
    source = table.line("source", 200).strip() if "source" in table else ""
    if not source:
        source = f"{name}.toml" if base is None else f"{name}, over the figures of {base.name}: {base.source}"
    if base is None:
        machine = Machine(name, name, DeviceFigures(()), 0, source=source)
    else:
        machine = replace(base, name=name, source=source)
    if "chip" in table:
        machine = replace(machine, chip=_words(table, "chip", MAX_NAME))
    if "device" in table:
        machine = replace(machine, device=_device(table.table("device"), machine.device))
    if "torus" in table and "node" in table:
        table.fail("node", "a machine has a torus or nodes, not both", "leave out [torus] or [node]")
    has_torus, has_nodes = bool(machine.torus), bool(machine.node)
    if "torus" in table:
        if has_nodes:
            table.fail("torus", f"{machine.chip} has nodes", "write [node], or another base")
        machine = _with_torus(table.table("torus"), machine)
    elif "node" in table:
        if has_torus:
            table.fail("node", f"{machine.chip} has a torus", "write [torus], or another base")
        machine = _with_nodes(table.table("node"), machine)
    elif base is None:
        table.fail(
            "torus", "it is missing", 'give base = "v5p:4x4x8", or [torus] or [node] and the keys below'
        )
    machine = _with_links_between(table, machine)
    if not 1 <= machine.devices <= MAX_DEVICES:
        where = "torus" if machine.torus else "node"
        table.fail(where, f"it makes {machine.devices:,} devices", f"there are 1 to {MAX_DEVICES:,}")
    if "measured" in table:
        machine = replace(machine, measured=measured_tables(table.tables("measured"), machine))
    return machine


def _words(table: StrictTable, key: str, most: int) -> str:
    """A line with a word in it."""
    text = table.line(key, most).strip()
    if not text:
        table.fail(key, "the text is empty", "write a name, or leave it out")
    return text


def _base(table: StrictTable) -> Machine | None:
    if "base" not in table:
        return None
    text = table.line("base", MAX_NAME)
    if _is_file(text.strip()):
        table.fail("base", "it is another file", "name hardware such as v5p:4x4x8")
    try:
        return named_machine(text)
    except QuestionError as error:
        table.fail("base", error.message, error.hint)


def _device(table: StrictTable, before: DeviceFigures) -> DeviceFigures:
    table.only(_DEVICE)
    peak = dict(before.peak)
    if "peak" in table:
        own = table.table("peak")
        for key in own.values:
            try:
                dtype = canonical_dtype(key)
            except QuestionError as error:
                own.fail(key, error.message, error.hint)
            peak[dtype] = figure(own, key, PEAK)
    hbm = int(figure(table, "hbm", SIZE)) if "hbm" in table else before.hbm_bytes
    usable = int(figure(table, "usable_hbm", SIZE)) if "usable_hbm" in table else before.usable_bytes
    if hbm is not None and usable is not None and usable > hbm:
        if "usable_hbm" in table:
            table.fail("usable_hbm", "it is more than the HBM", "write the part that a program may use")
        usable = None
    bandwidth = figure(table, "hbm_bandwidth", BANDWIDTH) if "hbm_bandwidth" in table else None
    on_chip = int(figure(table, "on_chip", SIZE)) if "on_chip" in table else before.on_chip_bytes
    clock = figure(table, "clock", CLOCK) if "clock" in table else before.clock
    return DeviceFigures(tuple(peak.items()), hbm, usable, bandwidth or before.hbm_bandwidth, on_chip, clock)


def _with_torus(table: StrictTable, machine: Machine) -> Machine:
    table.only(_TORUS)
    torus = _shape(table) if "shape" in table or not machine.torus else machine.torus
    per_chip = _count(table, "devices_per_chip", machine.devices_per_chip)
    slices = _count(table, "slices", machine.slices)
    wrap = machine.wrap
    if torus != machine.torus:
        chip = TPUS.get(machine.chip)
        wrap = chip.wrap(torus) if chip is not None and chip.rank == len(torus) else (False,) * len(torus)
    if "wrap" in table:
        wrap = _wrap(table, len(torus))
    before = machine.axis_links if torus == machine.torus else machine.axis_links[:1] * len(torus)
    return replace(
        machine,
        devices=math.prod(torus) * per_chip * slices,
        devices_per_chip=per_chip,
        torus=torus,
        wrap=wrap,
        axis_links=_axis_links(table, len(torus), before),
        slices=slices,
    )


def _shape(table: StrictTable) -> tuple[int, ...]:
    hint = f'write the chips along {", ".join(AXES)}: "4x4x8" or [4, 4, 8]'
    value = table.values.get("shape")
    if isinstance(value, list):
        sizes = value
    else:
        text = table.typed("shape", str, hint)
        sizes = [int(size) if re.fullmatch("[0-9]{1,9}", size) else 0 for size in re.split("[x×]", text)]
    if not 1 <= len(sizes) <= len(AXES) or not all(type(size) is int and 1 <= size < 10**9 for size in sizes):
        table.fail("shape", f"{quote(str(value), 30)} is not the shape of a torus", hint)
    return tuple(sizes)


def _wrap(table: StrictTable, rank: int) -> tuple[bool, ...]:
    value = table.values["wrap"]
    values = [value] * rank if isinstance(value, bool) else value
    if not isinstance(values, list) or len(values) != rank or not all(type(one) is bool for one in values):
        table.fail("wrap", f"{quote(str(value), 30)} is not one truth value for each axis",
                   f"write true, false, or [{', '.join(['true'] * rank)}]")  # fmt: skip
    return tuple(values)


def _axis_links(table: StrictTable, rank: int, before: tuple[LinkSpec, ...]) -> tuple[LinkSpec, ...]:
    """The link of each axis: one bandwidth and latency for all, or a list of them."""
    columns = []
    for key, quantity in (("bandwidth", BANDWIDTH), ("latency", LATENCY)):
        if isinstance(table.values.get(key), list):
            own = table.listed(key, rank)
            if len(own.values) != rank:
                table.fail(
                    key,
                    f"it has {plural(len(own.values), 'value')}",
                    f"give one, or {rank}, one for each axis",
                )
            columns.append([figure(own, number, quantity) for number in own.values])
        elif key in table or (key == "bandwidth" and not before):
            columns.append([figure(table, key, quantity)] * rank)
        else:
            usual = {
                "bandwidth": [link.bandwidth for link in before],
                "latency": [link.latency for link in before],
            }
            columns.append(usual[key] or [ICI_HOP] * rank)
    return tuple(LinkSpec(latency, bandwidth) for bandwidth, latency in zip(*columns, strict=True))


def _with_nodes(table: StrictTable, machine: Machine) -> Machine:
    table.only(_NODE)
    if not machine.node:
        table.typed("devices", int, "write how many devices a node has")
    nodes = machine.devices // machine.node if machine.node else 1
    node, count = _count(table, "devices", machine.node), _count(table, "count", nodes)
    link = _link(table, machine.node_link, NVLINK_HOP)
    return replace(machine, devices=node * count, node=node, node_link=link)


def _with_links_between(table: StrictTable, machine: Machine) -> Machine:
    """The links between the devices of a chip, and the network; each has to be there where it is needed."""
    found = {"cores": machine.core_link, "network": machine.network}
    needed = {
        "cores": machine.devices_per_chip > 1,
        "network": machine.slices > 1 or bool(machine.node and machine.devices > machine.node),
    }
    hops = {"cores": ICI_HOP, "network": DCN_LATENCY if machine.torus else INFINIBAND_HOP}
    for key, before in found.items():
        if key in table:
            own = table.table(key)
            own.only(_LINK)
            found[key] = _link(own, before, hops[key])
        elif needed[key] and before is None:
            table.table(key)
    return replace(machine, core_link=found["cores"], network=found["network"])


def _link(table: StrictTable, before: LinkSpec | None, hop: float) -> LinkSpec:
    """A link; its bandwidth has to be there where none was before."""
    latency = hop if before is None else before.latency
    if "latency" in table:
        latency = figure(table, "latency", LATENCY)
    if before is not None and "bandwidth" not in table:
        return LinkSpec(latency, before.bandwidth)
    return LinkSpec(latency, figure(table, "bandwidth", BANDWIDTH))


def _count(table: StrictTable, key: str, before: int) -> int:
    if key not in table:
        return before
    count = table.typed(key, int)
    if not 1 <= count <= MAX_DEVICES:
        table.fail(
            key,
            f"{quote(str(count), 30)[1:-1]} is outside the range 1 to {MAX_DEVICES:,}",
            "write a whole number",
        )
    return count


def _line_of(text: str, key: str) -> int | None:
    """The line on which a key of a TOML text stands, from 1; None where it is not found."""
    table = ""
    tables: Counter[str] = Counter()
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(r"\s*(\[\[?)\s*([\w.\-]+)", line):
            name = header[2]
            if header[1] == "[[":
                tables[name] += 1
                name = f"{name}.{tables[name]}"
            table = f"{name}."
            if name == key:
                return number
        elif (word := re.match(r"\s*([\w.\-]+)\s*=", line)) and f"{key}.".startswith(f"{table}{word[1]}."):
            return number
    return None
